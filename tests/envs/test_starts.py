"""Single envs that start from the hash go through the same episodes as the batch envs."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
import torch

from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.batch_trading import BatchTrading
from rlbench.envs.one_by_one import OneByOne
from rlbench.envs.spaces import EnvError, layout_of
from rlbench.envs.starts import HashedStarts, can_hash_starts
from rlbench.envs.trading import TradingEnv


def cart_pole():
    return gymnasium.make("CartPole-v1")


def compare(envs, batch, steps, seed, obs_tolerance=0.0):
    """Step single and batch envs with the same random actions; returns how many episodes ended, and how many obs differ."""
    rng = np.random.default_rng(seed)
    collector = OneByOne(envs, seed=99)  # its seeds must not matter
    state, obs = batch.reset()
    np.testing.assert_array_equal(collector.obs, obs)
    ended = differing = 0
    for _ in range(steps):
        action = rng.integers(0, batch.num_actions, batch.num_envs)
        row = collector.step(action)
        state, step = batch.step(state, torch.from_numpy(action))
        np.testing.assert_array_equal(row.terminated, step.terminated)
        np.testing.assert_array_equal(row.truncated, step.truncated)
        np.testing.assert_allclose(row.reward, step.reward, rtol=4 * 2.0**-52, atol=0)
        for single, many in ((row.next_obs, step.next_obs.numpy()), (collector.obs, step.obs.numpy())):
            np.testing.assert_allclose(many, single, rtol=obs_tolerance, atol=obs_tolerance)
            differing += int((single != many).sum())
        ended += int((row.terminated | row.truncated).sum())
    return ended, differing


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"window": 3, "fee": 0.01, "borrow_rate": 0.001},
        {"episode_length": None},
        {"random_start": False},
        {"positions": (-8, 0, 8), "fee": 0.15},  # ruined often
    ],
    ids=str,
)
@pytest.mark.parametrize("count", [1, 5])
def test_trading_episodes_are_those_of_the_batch(random_market, arguments, count):
    market = random_market(bars=60)
    market.close = np.ascontiguousarray(market.close)
    arguments = {"episode_length": 12, **arguments}
    envs = [HashedStarts(TradingEnv(market, **arguments), seed=7, index=i) for i in range(count)]
    ended, differing = compare(envs, BatchTrading(market, count, seed=7, **arguments), 150, seed=1)
    assert ended >= 2 * count and differing == 0


@pytest.mark.parametrize("count", [1, 6])
def test_cart_pole_episodes_are_those_of_the_batch(count):
    envs = [HashedStarts(cart_pole(), seed=3, index=i) for i in range(count)]
    ended, differing = compare(envs, BatchCartPole(count, seed=3), 300, seed=2, obs_tolerance=2.0**-23)
    assert ended > 8 * count
    assert differing <= 0.001 * 300 * count * 8  # a state that differs in its last bit rounds to another float32 seldom


def test_the_seed_of_reset_does_not_matter():
    first, second = (HashedStarts(cart_pole(), seed=3, index=2) for _ in range(2))
    for seed in (None, 5, 6):
        obs, info = first.reset(seed=seed)
        np.testing.assert_array_equal(obs, second.reset()[0])
        assert info == {} and obs.dtype == np.float32 and first.unwrapped.state.dtype == np.float64
        np.testing.assert_array_equal(obs, first.unwrapped.state.astype(np.float32))
    other = HashedStarts(cart_pole(), seed=4, index=2)
    other.reset()
    assert not np.array_equal(other.unwrapped.state, HashedStarts(cart_pole(), 3, 2).reset()[0])


def test_a_reset_in_mid_episode_begins_the_next():
    env = HashedStarts(cart_pole(), seed=0, index=0)
    env.reset()
    env.step(0)
    second, _ = env.reset()
    env.step(1)
    third, _ = env.reset()
    assert env.episode == 3 and not np.array_equal(second, third)
    assert env.env.get_wrapper_attr("_elapsed_steps") == 0


def test_a_step_is_the_inner_envs():
    inner = cart_pole()
    env = HashedStarts(inner, seed=0, index=0)
    assert env.step == inner.step


def test_it_says_what_the_inner_env_says(random_market):
    inner = TradingEnv(random_market(bars=40), episode_length=5)
    env = HashedStarts(inner, seed=0, index=0)
    assert env.spec is inner.spec and layout_of(env) == inner.layout
    assert env.observation_space is inner.observation_space and env.action_space is inner.action_space
    assert HashedStarts(cart_pole(), 0, 0).spec.id == "CartPole-v1"


def test_copies_go_their_own_way(random_market):
    env = HashedStarts(TradingEnv(random_market(bars=40), episode_length=5), seed=0, index=0)
    env.reset()
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        before = env.unwrapped.price
        twin.step(2)
        assert env.unwrapped.price == before != twin.unwrapped.price
        assert twin.episode == 1 and twin.step.__self__ is twin.env
    assert copy.deepcopy(env).unwrapped.market is env.unwrapped.market


def test_start_options_are_refused(random_market):
    env = HashedStarts(TradingEnv(random_market(bars=40), episode_length=5), seed=0, index=0)
    with pytest.raises(ValueError, match=r"\['start'\] are refused"):
        env.reset(options={"start": 3})
    assert env.episode == 0
    env.reset(options={})


def test_other_environments_are_refused(random_market):
    trading = TradingEnv(random_market(bars=40), episode_length=5)
    assert can_hash_starts(trading) and can_hash_starts(cart_pole())
    others = [
        gymnasium.make("Acrobot-v1"),
        gymnasium.make("CartPole-v1", sutton_barto_reward=True),
        gymnasium.make("CartPole-v1", max_episode_steps=100),
        gymnasium.wrappers.ClipReward(cart_pole(), 0, 0.5),
        gymnasium.wrappers.NormalizeObservation(trading),
    ]
    for env in others:
        assert not can_hash_starts(env)
        with pytest.raises(EnvError, match="accepted are a TradingEnv and"):
            HashedStarts(env, seed=0, index=0)


def test_in_gymnasiums_vector_env():
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda i=i: HashedStarts(cart_pole(), 5, i) for i in range(3)],
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    batch = BatchCartPole(3, seed=5)
    state, expected = batch.reset()
    np.testing.assert_array_equal(envs.reset(seed=1)[0], expected)
    for _ in range(60):
        state, step = batch.step(state, torch.ones(3, dtype=torch.int64))
        np.testing.assert_allclose(envs.step(np.ones(3, np.int64))[0], step.obs, rtol=2.0**-23, atol=1e-12)
    assert int(state.episode.min()) >= 4
    envs.close()
