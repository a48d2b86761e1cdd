"""The native envs step as their tensor counterparts do, to the last bit for trading."""

import numpy as np
import pytest
import torch

from rlbench import simulate
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.batch_trading import BatchTrading
from rlbench.envs.native_env import NativeCollector
from rlbench.envs.trading import TradingEnv
from rlbench.native.envs import NativeEnv, why_not_native

MARKETS = [simulate.ornstein_uhlenbeck(300, seed=1), simulate.ornstein_uhlenbeck(500, seed=2)]
WILD = {"positions": (-40, -1, 0, 0.5, 40), "fee": 0.01, "slippage": 0.02, "borrow_rate": 1e-3}


def both(core, steps, seed=0):
    """(native, tensors) of each step's obs, reward, terminated, truncated, next_obs."""
    env, (state, obs) = NativeEnv(core), core.reset()
    assert np.array_equal(env.first_obs, obs.numpy())
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        action = rng.integers(0, core.num_actions, core.num_envs)
        state, step = core.step(state, torch.from_numpy(action))
        yield env.step(action), tuple(tensor.numpy() for tensor in step)


@pytest.mark.parametrize("num_envs", [1, 7])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"window": 4, "episode_length": 5},
        {"episode_length": None},
        {"random_start": False, "episode_length": 1},
        {"positions": (1, 2)},  # none is flat: the first choice always trades
        {**WILD, "episode_length": 50},  # accounts are ruined
        {"initial_equity": 1000.0, "observation_clip": 0.5},
    ],
)
def test_trading_equals_the_tensors(num_envs, settings):
    core, ends = BatchTrading(MARKETS, num_envs, seed=3, **settings), 0
    for ours, theirs in both(core, 400):
        for name, one, other in zip(
            ("obs", "reward", "terminated", "truncated", "next_obs"), ours, theirs, strict=True
        ):
            if name == "reward":  # torch's logarithm is not the C library's
                np.testing.assert_allclose(one, other, rtol=4 * np.finfo(float).eps, atol=1e-16)
            else:
                assert np.array_equal(one, other), name
        ends += (ours[2] | ours[3]).sum()
    assert ends or settings.get("episode_length", 256) is None


def test_ruin_is_reached():
    core = BatchTrading(MARKETS, 16, seed=3, **WILD)
    assert sum(ours[2].sum() for ours, _ in both(core, 200)) > 0


def test_trading_rewards_are_within_two_units_in_the_last_place_of_the_single_env():
    market = MARKETS[0]
    single, env = TradingEnv(market, episode_length=100), NativeEnv(BatchTrading(market, 1, episode_length=100, seed=5))
    obs, _ = single.reset(options={"start": int(env.arrays["bar"][0])})
    assert np.array_equal(env.first_obs[0], obs)
    for action in np.random.default_rng(1).integers(0, 3, 100):
        _, reward, terminated, truncated, after = env.step(np.array([action]))
        obs, expected, *flags, _ = single.step(action)
        assert abs(reward[0] - expected) <= 2 * np.spacing(abs(expected))
        assert [terminated[0], truncated[0]] == flags and np.array_equal(after[0], obs)
    assert truncated[0]


@pytest.mark.parametrize("num_envs", [1, 9])
def test_cart_pole_equals_the_tensors(num_envs):
    """Within the last bits of sine and cosine, which an upright pole amplifies: so short episodes, and a small tolerance."""
    core, ends = BatchCartPole(num_envs, seed=2, max_episode_steps=30), 0
    for ours, theirs in both(core, 200):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
        ends += (ours[2] | ours[3]).sum()
    assert ends > 5 * num_envs


def test_both_flags_at_the_time_limit():
    env = NativeEnv(BatchCartPole(1, seed=0, max_episode_steps=1))
    env.arrays["state"][0] = [2.39, 5.0, 0.0, 0.0]  # over the edge at the first step
    *_, terminated, truncated, _ = env.step(np.array([1]))
    assert terminated[0] and truncated[0]


def test_an_action_out_of_range_steps_nothing():
    env = NativeEnv(BatchCartPole(3))
    before = env.arrays["state"].copy()
    with pytest.raises(ValueError, match="action=2 of env 1 is refused; accepted: 0 to 1"):
        env.step(np.array([0, 2, 1]))
    with pytest.raises(ValueError, match=r"shape \(2,\) are refused; accepted: \(3,\)"):
        env.step(np.array([0, 1]))
    assert np.array_equal(env.arrays["state"], before)


def test_what_has_no_native_counterpart():
    assert "BatchTrading and BatchCartPole have" in why_not_native(object())
    with pytest.raises(TypeError, match="no native counterpart"):
        NativeEnv(object())


def test_the_collector_hands_out_new_arrays_and_counts_episodes():
    collector = NativeCollector(BatchCartPole(2, seed=1, max_episode_steps=3))
    seen, finished = [], []
    for k in range(4):
        before = collector.obs
        collected = collector.step(np.array([0, 1]))
        assert collected.obs is before and collected.valid is None and collected.next_mask is None
        seen.append((collected.next_obs, collected.next_obs.copy()))
        finished.append(collector.finished)
        assert np.array_equal(collector.obs, collected.next_obs) == (k != 2)
    assert finished == [[], [], [(3.0, 3), (3.0, 3)], []]
    assert all(np.array_equal(array, copy) for array, copy in seen)


def test_the_logarithm_near_and_far_from_one():
    """Against 50 digits: within two units in the last place, also where the series of numbers near 1 does not serve."""
    from decimal import Decimal, getcontext

    getcontext().prec = 50
    market = MARKETS[0]
    ratios = np.concatenate(
        (1 + np.geomspace(1e-15, 0.249, 40), 1 - np.geomspace(1e-15, 0.249, 40), [0.75, 1.25, 3.0, 1e-3, 1.0])
    )
    env = NativeEnv(BatchTrading(market, len(ratios), fee=0.0))
    env.arrays["equity"][:] = 1.0 / ratios  # flat accounts of one unit of cash: equity becomes 1
    _, reward, *_ = env.step(np.full(len(ratios), 1))
    for growth, found in zip(1.0 / (1.0 / ratios), reward, strict=True):
        exact = Decimal(float(growth)).ln()
        assert abs(Decimal(float(found)) - exact) <= 2 * Decimal(float(np.spacing(abs(float(exact)))))
