"""Many accounts at once against as many single envs: bit for bit, with every argument that changes the accounting."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch

from rlbench.envs.batch_trading import BatchTrading
from rlbench.envs.batch_trading_env import BatchTradingEnv
from rlbench.envs.trading import TradingEnv


def random_market(bars: int, seed: int, features: int = 3, volatility: float = 0.02) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    close = 100 * np.exp(np.cumsum(volatility * rng.standard_normal(bars)))
    return SimpleNamespace(
        close=close, features=(8 * rng.standard_normal((bars, features))).astype(np.float32), name="m"
    )


CASES = [
    {},
    {"fee": 0.01, "borrow_rate": 0.001},
    {"positions": (-2, -0.5, 0, 0.3, 1, 3), "fee": 0.002, "slippage": 0.001, "borrow_rate": 1e-4},
    {"positions": (-3, 4), "fee": 0.0},
    {"positions": (0, 1), "window": 4, "episode_length": None},
    {"positions": (1,), "window": 2, "episode_length": 1},
    {"positions": (-8, 0, 8), "fee": 0.15, "initial_equity": 1000.0, "observation_clip": 2.0},  # ruined often
]


def singles(markets, count, arguments, starts):
    envs = [TradingEnv(markets[i % len(markets)], **arguments) for i in range(count)]
    obs = [env.reset(options={"start": int(start)})[0] for env, start in zip(envs, starts, strict=True)]
    return envs, np.stack(obs)


@pytest.mark.parametrize("arguments", CASES, ids=str)
@pytest.mark.parametrize(("count", "tickers"), [(1, 1), (7, 1), (8, 3)])
def test_every_account_equals_a_single_env(arguments, count, tickers):
    arguments = {"episode_length": 20, **arguments}
    markets = [random_market(60 + 10 * k, seed=k, volatility=0.05) for k in range(tickers)]
    batch = BatchTrading(markets, count, seed=5, **arguments)
    rng = np.random.default_rng(1)
    first = arguments.get("window", 1) - 1
    starts = rng.integers(first, first + 5, count)
    envs, expected = singles(markets, count, arguments, starts)
    state, obs = batch.reset(torch.from_numpy(starts))
    np.testing.assert_array_equal(obs.numpy(), expected)
    ruined = 0
    for _ in range(70):
        action = rng.integers(0, len(batch.positions), count)
        was = state.episode
        state, step = batch.step(state, torch.from_numpy(action))
        for i, env in enumerate(envs):
            after, reward, terminated, truncated, info = env.step(action[i])
            ruined += terminated
            np.testing.assert_array_equal(step.next_obs[i].numpy(), after)
            assert (bool(step.terminated[i]), bool(step.truncated[i])) == (terminated, truncated)
            assert abs(step.reward[i].item() - reward) <= 4 * np.spacing(abs(reward))
            if terminated or truncated:
                assert state.episode[i] == was[i] + 1
                offset = int(state.bar[i] - batch.data.first_start[i % tickers]) + first
                restarted, _ = env.reset(options={"start": offset})
                np.testing.assert_array_equal(step.obs[i].numpy(), restarted)
            else:
                assert state.equity[i].item() == info["equity"] and state.position[i].item() == info["position"]
                np.testing.assert_array_equal(step.obs[i].numpy(), after)
    if arguments.get("fee") == 0.15 and count > 1:
        assert ruined  # the case is there for it


def test_starts_depend_on_seed_episode_and_account_alone():
    market = random_market(500, seed=0)
    few, many = (BatchTrading(market, n, seed=3, episode_length=10).reset()[0].bar for n in (4, 400))
    assert torch.equal(few, many[:4]) and len(many.unique()) > 200
    assert int(many.min()) >= 0 and int(many.max()) <= 500 - 1 - 10
    other = BatchTrading(market, 400, seed=4, episode_length=10).reset()[0].bar
    assert not torch.equal(many, other)
    fixed = BatchTrading(market, 4, random_start=False, window=3, episode_length=10).reset()[0].bar
    assert fixed.tolist() == [2] * 4


def test_step_changes_nothing_that_was_handed_out():
    batch = BatchTrading(random_market(100, 0), 5, episode_length=3)
    state, obs = batch.reset()
    copies = [tensor.clone() for tensor in (*state, obs)]
    later = state
    for _ in range(10):
        later, _ = batch.step(later, torch.ones(5, dtype=torch.int64))
    assert all(torch.equal(a, b) for a, b in zip((*state, obs), copies, strict=True))


def test_vector_env_face():
    market = random_market(200, seed=0)
    envs = BatchTradingEnv(market, 6, episode_length=5, seed=1)
    obs, info = envs.reset(seed=11)
    assert envs.observation_space.contains(obs) and set(info) == {"equity", "position"}
    again, _ = envs.reset(seed=11)
    np.testing.assert_array_equal(obs, again)
    for t in range(1, 12):
        obs, _, terminated, truncated, info = envs.step(envs.action_space.sample())
        assert envs.observation_space.contains(obs) and not terminated.any()
        assert truncated.all() == (t % 5 == 0)
        if truncated.any():
            assert info["_final_obs"].all() and not np.array_equal(np.stack(info["final_obs"]), obs)
    assert isinstance(envs, gymnasium.vector.VectorEnv)
    for wrong in ([0] * 5, [3] * 6, [-1] * 6):
        with pytest.raises(ValueError, match="from 0 to 2"):
            envs.step(wrong)


def test_dqn_trains_on_it():
    import rlbench

    envs = BatchTradingEnv(random_market(300, seed=0), 8, episode_length=16)
    config = rlbench.DQNConfig(total_timesteps=640, learning_starts=100, batch_size=16, hidden=(8,), eval_episodes=0)
    history = rlbench.DQN(config, env=envs).train(progress=False)
    assert history.env_steps == 640 and history.updates == 54
    assert (history.episodes.length == 16).all() and len(history.episodes) == 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_envs": 0}, "num_envs=0"),
        ({"fee": 1.0}, "fee"),
        ({"market": []}, r"market=\[\]"),
        ({"window": 100}, r"window.*markets\[0\] has 100 bars"),
        ({"episode_length": 100}, "episode_length"),
        ({"market": [random_market(50, 0), random_market(50, 0, features=2)]}, r"markets\[1\] has 2 features"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        BatchTrading(**{"market": random_market(100, 0), "episode_length": 10, **arguments})


def test_wrong_starts_are_named():
    batch = BatchTrading(random_market(100, 0), 2, window=3, episode_length=10)
    for start in ([1, 5], [5, 90], [5]):
        with pytest.raises(ValueError, match=r"start=.*bars from 2 on"):
            batch.reset(torch.tensor(start))
