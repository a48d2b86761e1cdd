"""Collector over a native batch env: N environments in one C call, arrays in NumPy, nothing in between."""

from __future__ import annotations

import numpy as np

from rlbench.batch import Collected
from rlbench.envs.batch import BatchEnv
from rlbench.envs.episodes import EpisodeSums
from rlbench.envs.spaces import EnvSpec
from rlbench.native.envs import NativeEnv


class NativeCollector:
    """As the other collectors: `obs` (N, D) is where to act; all N rows of a step are real transitions.

    All arrays that are handed out are new.
    """

    mask, masked = None, False

    def __init__(self, core: BatchEnv) -> None:
        self.env = NativeEnv(core)
        self.name, self.num_envs, self.build_s = core.name, core.num_envs, self.env.build_s
        self.envs = ()  # nothing that an evaluation could be given by mistake
        self.spec = EnvSpec((core.obs_size,), core.num_actions, 0, core.name, core.layout)
        self.obs = self.env.first_obs  # (N, D)
        self.finished: list[tuple[float, int]] = []  # (return, length) of episodes that ended in the last step
        self._sums = EpisodeSums(self.num_envs)

    def step(self, actions: np.ndarray) -> Collected:
        """Take action `actions[i]` (int64, counted from 0) in environment i."""
        before = self.obs
        self.obs, reward, terminated, truncated, next_obs = self.env.step(actions)
        self.finished = self._sums.add(reward, terminated | truncated)
        return Collected(before, actions, reward, next_obs, terminated, truncated, None, None)

    def close(self) -> None:
        """Nothing is held but memory."""
