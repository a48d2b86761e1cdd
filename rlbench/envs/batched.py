"""Collector over a batch env: N environments as tensors, read on the host once a step because the trainer asks for arrays."""

from __future__ import annotations

import numpy as np
import torch

from rlbench.batch import Collected
from rlbench.envs.batch import BatchEnv, check_kept
from rlbench.envs.episodes import EpisodeSums
from rlbench.envs.spaces import EnvSpec


class BatchCollector:
    """As the other collectors: `obs` (N, D) is where to act; all N rows of a step are real transitions.

    Arrays that are handed out are those of new tensors, which a batch env makes at every step; one that does not is refused.
    """

    mask, masked = None, False

    def __init__(self, core: BatchEnv) -> None:
        self.core, self.name, self.num_envs = core, core.name, core.num_envs
        self.envs = ()  # no single environment is inside
        self.spec = EnvSpec((core.obs_size,), core.num_actions, 0, core.name, core.layout)
        self._state, self._obs = core.reset()
        self.obs = self._obs.cpu().numpy()  # sync: the trainer takes arrays; (N, D)
        self.finished: list[tuple[float, int]] = []  # (return, length) of episodes that ended in the last step
        self._sums = EpisodeSums(self.num_envs)

    def step(self, actions: np.ndarray) -> Collected:
        """Take action `actions[i]` (int64, counted from 0) in environment i."""
        before = self.obs
        self._state, step = self.core.step(self._state, torch.from_numpy(actions).to(self.core.device))
        check_kept(self._obs, step.obs, self.name)
        self._obs = step.obs
        self.obs, reward, terminated, truncated, next_obs = (field.cpu().numpy() for field in step)  # sync: as above
        self.finished = self._sums.add(reward, terminated | truncated)
        return Collected(before, actions, reward, next_obs, terminated, truncated, None, None)

    def close(self) -> None:
        """Nothing is held but memory."""
