"""The Gymnasium face of batch envs: spaces, ends, true last observations, and arrays that stay what they were."""

from types import SimpleNamespace
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

import rlbench
from rlbench.envs.batch import BatchStep
from rlbench.envs.batch_cartpole_env import BatchCartPoleEnv
from rlbench.envs.batch_trading_env import BatchTradingEnv
from rlbench.envs.batch_vector_env import BatchVectorEnv
from rlbench.envs.vector import VectorCollector


class CountingState(NamedTuple):
    t: torch.Tensor
    episode: torch.Tensor
    action: torch.Tensor


class Counting:
    """obs = 10 episode + t; env i truncates after i + 2 steps. All its outputs lie in memory that it uses again."""

    name, obs_size, num_actions, device, layout, seed = "Counting", 1, 3, torch.device("cpu"), None, 0

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.length = torch.arange(num_envs) + 2
        self.memory = None

    def reset(self):
        nothing = torch.zeros(self.num_envs, dtype=torch.int64)
        return CountingState(nothing, nothing, nothing), self._obs(nothing, nothing)

    def step(self, state, action):
        t = state.t + 1
        ended = t == self.length
        episode = state.episode + ended
        after = self._obs(torch.where(ended, 0, t), episode)
        step = BatchStep(after, action.double(), torch.zeros_like(ended), ended, self._obs(t, state.episode))
        if self.memory is None:
            self.memory = step
        for kept, new in zip(self.memory, step, strict=True):
            kept.copy_(new)
        return CountingState(torch.where(ended, 0, t), episode, action), self.memory

    def _obs(self, t, episode):
        return (10 * episode + t)[:, None].float()


def counting(num_envs, first_action=0):
    return BatchVectorEnv(Counting(num_envs), Box(0, np.inf, (1,), np.float32), Discrete(3, start=first_action))


def test_no_row_joins_two_episodes():
    collector = VectorCollector(counting(3), seed=0)
    assert collector.mode == "SAME_STEP"
    rows = {i: [] for i in range(3)}
    for _ in range(4):
        row = collector.step(np.zeros(3, np.int64))
        assert row.valid is None
        for i in range(3):
            rows[i].append((int(row.obs[i, 0]), int(row.next_obs[i, 0]), bool(row.truncated[i])))
    assert rows == {
        0: [(0, 1, False), (1, 2, True), (10, 11, False), (11, 12, True)],
        1: [(0, 1, False), (1, 2, False), (2, 3, True), (10, 11, False)],
        2: [(0, 1, False), (1, 2, False), (2, 3, False), (3, 4, True)],
    }


def market(bars=80):
    rng = np.random.default_rng(0)
    close = 100 * np.exp(np.cumsum(0.02 * rng.standard_normal(bars)))
    return SimpleNamespace(close=close, features=rng.standard_normal((bars, 2)).astype(np.float32), name="m")


FACES = {
    "trading": lambda: BatchTradingEnv(market(), 5, episode_length=6, seed=1),
    "cartpole": lambda: BatchCartPoleEnv(5, seed=1, max_episode_steps=9),
    "counting": lambda: counting(5),
}


def arrays_of(result):
    """Every array in what `reset` or `step` returned."""
    for part in result:
        for item in part.values() if isinstance(part, dict) else [part]:
            if item.dtype == object:
                yield from (row for row in item if row is not None)
            else:
                yield item


@pytest.mark.parametrize("face", FACES)
def test_arrays_that_were_handed_out_are_never_overwritten(face):
    envs, kept, copies = FACES[face](), [], []
    actions = np.zeros(5, np.int64)  # one array, overwritten at every step, as a fast loop would
    for t in range(20):
        actions[:] = np.arange(5) * t % 2
        result = envs.reset() if t == 0 else envs.step(actions)
        kept += arrays_of(result)
        copies += [array.copy() for array in arrays_of(result)]
    envs.reset()
    assert len(kept) > 80
    for array, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("face", FACES)
def test_writing_to_what_was_handed_out_changes_nothing(face):
    clean, spoilt = FACES[face](), FACES[face]()
    clean_result, spoilt_result = clean.reset(), spoilt.reset()
    for t in range(20):
        for a, b in zip(arrays_of(clean_result), arrays_of(spoilt_result), strict=True):
            np.testing.assert_array_equal(a, b)
            b[...] = 77 if b.dtype != bool else ~b
        actions = np.arange(5) * t % 2
        clean_result, spoilt_result = clean.step(actions), spoilt.step(actions)
        actions[:] = 1


def test_cartpole_face_has_gymnasiums_spaces():
    envs = BatchCartPoleEnv(3, seed=5)
    single = gymnasium.make("CartPole-v1")
    assert envs.single_observation_space == single.observation_space
    assert envs.single_action_space == single.action_space
    of_gymnasium = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    assert (envs.observation_space, envs.action_space) == (of_gymnasium.observation_space, of_gymnasium.action_space)
    assert isinstance(envs, gymnasium.vector.VectorEnv) and envs.layout is None


def test_cartpole_face_steps():
    envs = BatchCartPoleEnv(3, max_episode_steps=2)
    start = np.arange(12.0).reshape(3, 4) / 100
    obs, info = envs.reset(seed=4, options={"start": start})
    np.testing.assert_array_equal(obs, start.astype(np.float32))
    assert info == {}
    *_, terminated, truncated, info = envs.step([0, 1, 0])
    assert not terminated.any() and not truncated.any() and info == {}
    obs, reward, _, truncated, info = envs.step(np.array([1, 0, 1], np.uint8))
    assert truncated.all() and info["_final_obs"].all() and reward.tolist() == [1.0] * 3
    assert np.abs(obs).max() <= 0.05 < np.abs(np.stack(info["final_obs"])).max()


def test_seed_of_reset_replaces_the_constructors():
    by_constructor = BatchCartPoleEnv(4, seed=8).reset()[0]
    envs = BatchCartPoleEnv(4)
    for seed in (8, [8, 1, 2, 3], np.array([8, 1])):
        np.testing.assert_array_equal(envs.reset(seed=seed)[0], by_constructor)
    np.testing.assert_array_equal(envs.reset(seed=[None] * 4)[0], by_constructor)
    assert not np.array_equal(envs.reset(seed=9)[0], by_constructor)


def test_actions_count_from_the_spaces_first():
    envs = counting(2, first_action=5)
    envs.reset()
    assert envs.step([5, 7])[1].tolist() == [0.0, 2.0]  # the reward is the core's action
    for wrong in ([0, 5], [5, 8], [5.0, 6.0], [5], [True, False], [[5, 6]], ["5", "6"]):
        with pytest.raises(ValueError, match=r"actions=.*\(2,\) whole numbers from 5 to 7"):
            envs.step(wrong)


def test_wrong_use_is_named():
    with pytest.raises(RuntimeError, match="call reset"):
        BatchCartPoleEnv(2).step([0, 0])
    with pytest.raises(ValueError, match=r"\['strat'\] are unknown; accepted: 'start', x, x_dot"):
        BatchCartPoleEnv(2).reset(options={"strat": 1})
    with pytest.raises(ValueError, match=r"\['start'\] are unknown; accepted: none"):
        counting(2).reset(options={"start": [1, 2]})
    with pytest.raises(ValueError, match=r"start=.*whole numbers"):
        BatchTradingEnv(market(), 2, episode_length=6).reset(options={"start": [1.5, 2.0]})
    with pytest.raises(ValueError, match=r"start=.*x_dot"):
        BatchCartPoleEnv(2).reset(options={"start": [["a"] * 4] * 2})
    for spaces in ((Box(0, 1, (2,)), Discrete(3)), (Box(0, 1, (1,)), Discrete(2))):
        with pytest.raises(ValueError, match=r"accepted for Counting: \(1,\) and 3 actions"):
            BatchVectorEnv(Counting(2), *spaces)


def test_dqn_trains_on_the_cartpole_face():
    config = rlbench.DQNConfig(total_timesteps=800, learning_starts=100, batch_size=16, hidden=(8,), eval_episodes=0)
    history = rlbench.DQN(config, env=BatchCartPoleEnv(8, max_episode_steps=20)).train(progress=False)
    assert history.env_steps == 800 and history.episodes.length.between(5, 20).all()
