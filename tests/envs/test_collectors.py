"""Collectors store real transitions only, with true last observations (handed cases 1 and 9)."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from rlbench.buffers import DequeReplay, RingNumpy, RingTorch, RowSpec, one_step
from rlbench.envs.make import make_collector
from rlbench.envs.spaces import EnvError
from rlbench.speedups.conversion import StackOnce

MODES = list(AutoresetMode)


class Counting(gymnasium.Env):
    """Observation 10·episode + t, reward 1, truncated after `length` steps.

    Unless it `copies`, it overwrites one array and one mask for ever.
    """

    def __init__(self, length: int = 2, masked: bool = False, copies: bool = False) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.length, self.masked, self.copies, self.episode = length, masked, copies, 0
        self.buffer, self.legal = np.zeros(1, np.float32), np.zeros(3, np.int8)

    def _out(self) -> tuple[np.ndarray, dict]:
        self.buffer[0] = 10 * self.episode + self.t
        self.legal[:] = [(self.t + k) % 2 for k in range(3)]
        obs, legal = (self.buffer.copy(), self.legal.copy()) if self.copies else (self.buffer, self.legal)
        return obs, {"action_mask": legal} if self.masked else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return self._out()

    def step(self, action):
        self.t += 1
        obs, info = self._out()
        return obs, 1.0, False, self.t == self.length, info


def counting(length: int = 2, masked: bool = False, copies: bool = False):
    return lambda: Counting(length, masked, copies)


def vector(lengths, mode, masked=False, cls=SyncVectorEnv, **kwargs):
    """Envs that overwrite their arrays, but for the mode in which Gymnasium itself needs copies."""
    copies = mode == AutoresetMode.SAME_STEP
    return cls([counting(length, masked, copies) for length in lengths], autoreset_mode=mode, **kwargs)


def stored_rows(collector, calls, replay_class, masked=False):
    """What the replay holds after some calls, as (obs, next_obs, truncated), and how many real steps there were."""
    replay, steps = replay_class(RowSpec(1, 3, masked), 1000), 0
    for _ in range(calls):
        collected = collector.step(np.zeros(collector.num_envs, np.int64))
        rows = one_step(collected, 0.9)
        steps += len(rows.action)
        if len(rows.action):
            replay.add(rows)
    rows = replay.sample(np.arange(len(replay)))
    rows = rows if replay.gives == "tensors" else StackOnce()(rows)
    return [
        (float(o), float(n), bool(t)) for o, n, t in zip(rows.obs, rows.next_obs, rows.truncated, strict=True)
    ], steps


@pytest.mark.parametrize("replay", [DequeReplay, RingNumpy, RingTorch])
def test_next_step_autoreset_puts_no_invented_row_in_the_buffer(replay):
    collector = make_collector(vector([2], AutoresetMode.NEXT_STEP), 1, seed=0)
    rows, steps = stored_rows(collector, 4, replay)
    assert rows == [(10, 11, False), (11, 12, True), (20, 21, False)]
    assert steps == 3


def expected_of(length: int, steps: int) -> list[tuple[float, float, bool]]:
    """The first `steps` real transitions of one Counting env, by plain counting."""
    out, episode, t = [], 1, 0
    for _ in range(steps):
        out.append((10.0 * episode + t, 10.0 * episode + t + 1, t + 1 == length))
        episode, t = (episode + 1, 0) if t + 1 == length else (episode, t + 1)
    return out


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("copy", [True, False])
def test_eight_envs_that_end_at_different_times(mode, copy):
    lengths = [1, 2, 3, 4, 5, 6, 7, 2]
    envs = vector(lengths, mode, copy=copy)
    rows, steps = stored_rows(make_collector(envs, 1, seed=0), 20, RingNumpy)
    check_eight(rows, steps, lengths, 20, lost=mode == AutoresetMode.NEXT_STEP)


def check_eight(rows, steps, lengths, calls, lost):
    """With NEXT_STEP an env of length n spends one call in n + 1 on its reset."""
    real = [calls - (calls // (n + 1) if lost else 0) for n in lengths]
    expected = [row for n, count in zip(lengths, real, strict=True) for row in expected_of(n, count)]
    assert sorted(rows) == sorted(expected)
    assert steps == sum(real)


def test_one_by_one_and_async_give_the_same_rows():
    lengths = [1, 2, 3, 4, 5, 6, 7, 2]
    factories = iter([counting(n) for n in [9, *lengths]])  # one environment is only looked at
    rows, steps = stored_rows(make_collector(lambda: next(factories)(), 8, seed=0), 20, RingTorch)
    check_eight(rows, steps, lengths, 20, lost=False)
    envs = vector(lengths[:3], AutoresetMode.SAME_STEP, cls=AsyncVectorEnv)
    try:
        rows, steps = stored_rows(make_collector(envs, 1, seed=0), 20, RingTorch)
    finally:
        envs.close()
    check_eight(rows, steps, lengths[:3], 20, lost=False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shared", [True, False])
def test_what_is_handed_out_equals_a_copy_logged_at_once(mode, shared):
    """The env overwrites its observation and mask in place; what came out of step k must not change later."""
    envs = vector([3, 3], mode, masked=True, copy=not shared)
    collector, kept, logged = make_collector(envs, 1, seed=0), [], []
    for _ in range(20):
        collected = collector.step(np.zeros(2, np.int64))
        fields = (collected.obs, collected.next_obs, collected.next_mask)
        kept.append(fields)
        logged.append([np.copy(field) for field in fields])
    for fields, copies in zip(kept, logged, strict=True):
        for field, copy in zip(fields, copies, strict=True):
            np.testing.assert_array_equal(field, copy)


@pytest.mark.parametrize("mode", [None, *MODES])
def test_masks_belong_to_their_states(mode):
    """legal[k] = (t + k) odd, and t is the last digit of the observation."""
    env = vector([3, 4], mode, masked=True) if mode else counting(3, True)
    collector = make_collector(env, 1, seed=0)
    for _ in range(20):
        collected = collector.step(np.zeros(collector.num_envs, np.int64))
        for i in range(collector.num_envs):
            if collected.valid is None or collected.valid[i]:
                t = int(collected.next_obs[i, 0]) % 10
                assert collected.next_mask[i].tolist() == [(t + k) % 2 == 1 for k in range(3)]
            t = int(collector.obs[i, 0]) % 10
            assert collector.mask[i].tolist() == [(t + k) % 2 == 1 for k in range(3)]


def test_an_env_that_loses_its_last_observation_in_same_step_mode_is_refused():
    collector = make_collector(SyncVectorEnv([counting(2)], autoreset_mode=AutoresetMode.SAME_STEP), 1, seed=0)
    collector.step(np.zeros(1, np.int64))
    with pytest.raises(EnvError, match=r"final_obs.*return copies, or use AutoresetMode.NEXT_STEP"):
        collector.step(np.zeros(1, np.int64))


@pytest.mark.parametrize("mode", [None, *MODES])
def test_finished_episodes_are_counted_without_reset_calls(mode):
    collector = make_collector(vector([3], mode) if mode else counting(3), 1, seed=0)
    finished = []
    for _ in range(12):
        collector.step(np.zeros(1, np.int64))
        finished += collector.finished
    assert finished == [(3.0, 3)] * (3 if mode == AutoresetMode.NEXT_STEP else 4)


def test_actions_are_counted_from_the_spaces_start():
    class Shifted(Counting):
        def __init__(self):
            super().__init__()
            self.action_space = gymnasium.spaces.Discrete(3, start=5)
            self.taken = []

        def step(self, action):
            assert type(action) is int and self.action_space.contains(np.int64(action))
            self.taken.append(action)
            return super().step(action)

    env = Shifted()
    collector = make_collector(env, 1, seed=0)
    for action in (0, 1, 2):
        collector.step(np.array([action]))
    assert env.taken == [5, 6, 7]
