"""Environments that child processes import: what the tests of executors step."""

import multiprocessing
import os
import time

import gymnasium
import numpy as np


class Counting(gymnasium.Env):
    """Observation 10·episode + t, reward 1, mask (t + k) odd; overwrites its observation and mask in place for ever.

    Episodes last 1 + (first seed modulo 7) steps, so that many in a row end at different times.
    """

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.episode = 0
        self.buffer, self.legal = np.zeros(1, np.float32), np.zeros(3, np.int8)

    def _out(self) -> tuple[np.ndarray, dict]:
        self.buffer[0] = 10 * self.episode + self.t
        self.legal[:] = [(self.t + k) % 2 for k in range(3)]
        return self.buffer, {"action_mask": self.legal}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length = self.length if seed is None else 1 + seed % 7
        self.episode, self.t = self.episode + 1, 0
        return self._out()

    def step(self, action):
        self.t += 1
        obs, info = self._out()
        return obs, 1.0, False, self.t == self.length, info


class TwoPartError(ArithmeticError):
    """An exception that can neither be made from its text nor be pickled."""

    def __init__(self, what: str, how: str) -> None:
        super().__init__(f"{what} {how}")
        self.held = lambda: None


class Troubled(Counting):
    """Action 1 raises, action 2 takes a minute; it shows the number of threads that libraries are told to use."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([float(os.environ.get("OMP_NUM_THREADS", -1))], np.float32), {}

    def step(self, action):
        if action == 1:
            raise TwoPartError("the book", "is crossed")
        time.sleep(60 if action == 2 else 0)
        return np.zeros(1, np.float32), 0.0, False, False, {}


def only_in_the_parent() -> Counting:
    if multiprocessing.parent_process() is not None:
        raise LookupError("no such market")
    return Counting()


def named_poles(name: str = "CartPole-v1") -> gymnasium.Env:
    return gymnasium.make(name)
