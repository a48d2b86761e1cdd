"""The trading env under Gymnasium's rules: checker, registration, observations, starts, ends, history."""

import copy
import math
import pickle
import subprocess
import sys
import warnings
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlbench.envs.trading import TradingEnv

SHORT, FLAT, LONG = 0, 1, 2


@pytest.mark.parametrize("skip_render_check", [False, True])
@pytest.mark.parametrize("kwargs", [{}, {"window": 5}, {"positions": (0,)}, {"reward": lambda step: step.exposure}])
def test_passes_gymnasiums_checker_without_warnings(random_market, kwargs, skip_render_check):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(TradingEnv(random_market(), **kwargs), skip_render_check=skip_render_check)


def test_is_registered_and_makeable(random_market):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("rlbench/Trading-v0", market=random_market(), fee=0.01)
        check_env(env.unwrapped)
    assert isinstance(env.unwrapped, TradingEnv)
    assert env.unwrapped.fee == 0.01


def test_import_of_the_package_needs_no_gymnasium_and_registers_late():
    code = """
import sys, rlbench.envs
assert "gymnasium" not in sys.modules
rlbench.envs.TradingEnv
import gymnasium
assert "rlbench/Trading-v0" in gymnasium.registry
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_spaces_have_finite_bounds_that_observations_keep(random_market):
    market = random_market()
    market.features[5] = 1e6  # an outlier of the test split, say
    market.features[6] = -1e6
    env = TradingEnv(market, window=3, positions=(-2.5, 0, 1), episode_length=None, random_start=False)
    assert np.isfinite(env.observation_space.low).all() and np.isfinite(env.observation_space.high).all()
    assert market.features.max() == np.float32(1e6)  # the market's own array is left alone
    observation, _ = env.reset()
    for step in range(100):
        assert observation in env.observation_space
        observation = env.step(step % 3)[0]
    env.reset(options={"start": 5})
    assert env.step(FLAT)[0][-3] == -10.0  # the last feature of bar 6


def test_observation_is_the_window_oldest_first_then_position_and_profit(toy_market):
    features = np.arange(12).reshape(6, 2) / 2
    env = TradingEnv(toy_market([100, 110, 120, 90, 90, 90], features), window=2, fee=0.0, episode_length=3, seed=0)
    observation, _ = env.reset(options={"start": 1})
    assert observation.tolist() == [0.0, 0.5, 1.0, 1.5, 0.0, 0.0]
    assert observation.dtype == np.float32
    observation = env.step(LONG)[0]  # bought at 110, now 120
    assert observation.tolist() == pytest.approx([1.0, 1.5, 2.0, 2.5, 1.0, 120 / 110 - 1], rel=1e-6)
    observation = env.step(SHORT)[0]  # sold short at 120, now 90
    assert observation.tolist() == pytest.approx([2.0, 2.5, 3.0, 3.5, -1.0, 0.25], rel=1e-6)


def test_observations_are_never_reused(random_market):
    env = TradingEnv(random_market(), window=4, seed=1)
    kept = [env.reset()[0]]
    logged = [kept[0].copy()]
    for step in range(20):
        observation = env.step(step % 3)[0]
        kept.append(observation)
        logged.append(observation.copy())
    assert all(np.array_equal(a, b) for a, b in zip(kept, logged, strict=True))
    kept[3][:] = 9.0
    assert not np.array_equal(env.market.features[:4].ravel(), kept[3][:-2])
    assert not any(np.shares_memory(a, b) for a, b in pairwise(kept))


def test_starts_are_random_seeded_and_cover_the_data(random_market):
    env = TradingEnv(random_market(30), window=4, episode_length=20)
    starts = set()
    for seed in range(200):
        env.reset(seed=seed)
        starts.add(int(env.history()["bar"].iloc[0]))
    assert starts == set(range(3, 10))  # 3 is the first full window; from 9, twenty steps reach the last bar, 29
    first, second = TradingEnv(random_market(), seed=5), TradingEnv(random_market(), seed=5)
    assert all(np.array_equal(first.reset()[0], second.reset()[0]) for _ in range(5))
    other = TradingEnv(random_market())
    other.reset(seed=5)
    again = TradingEnv(random_market(), seed=5)
    again.reset()
    assert other.history()["bar"].iloc[0] == again.history()["bar"].iloc[0]


def test_episode_and_data_ends_truncate(whole, random_market):
    env = TradingEnv(random_market(10), episode_length=4, random_start=False)
    env.reset()
    assert [env.step(LONG)[2:4] for _ in range(4)] == [(False, False)] * 3 + [(False, True)]
    with pytest.raises(RuntimeError, match="reset"):
        env.step(LONG)
    env = whole([1.0, 2.0, 3.0])
    assert ends(env, [LONG, LONG]) == [(False, False), (False, True)]


def ends(env, actions):
    env.reset()
    return [env.step(action)[2:4] for action in actions]


def test_a_step_before_reset_is_refused(whole):
    with pytest.raises(RuntimeError, match="reset"):
        whole([1.0, 2.0]).step(0)


def test_copies_and_pickles_go_on_alike(random_market):
    env = TradingEnv(random_market(), seed=3)
    env.reset()
    env.step(LONG)
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    expected = env.step(SHORT)
    for twin in twins:
        observation, reward, *rest = twin.step(SHORT)
        assert np.array_equal(observation, expected[0]) and reward == expected[1] and tuple(rest) == expected[2:]
    assert twins[0].market is env.market  # nothing writes to it, and it may be large
    env.reset()
    assert twins[0].history()["equity"].size == 3


def test_history_is_the_episode_as_a_table(whole, equities):
    env = whole([100.0, 110.0, 99.0, 99.0])
    equities(env, [LONG, LONG, FLAT])
    table = env.history()
    assert table["close"].tolist() == [100.0, 110.0, 99.0, 99.0]
    assert table["equity"].tolist() == pytest.approx([1.0, 1.1, 0.99, 0.99])
    assert table["position"].tolist()[:-1] == [1.0, 1.0, 0.0] and math.isnan(table["position"].iloc[-1])
    assert table["filled"].tolist() == [True, False, True, False]
    with pytest.raises(RuntimeError, match="reset"):
        whole([1.0, 2.0]).history()
