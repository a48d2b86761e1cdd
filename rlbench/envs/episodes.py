"""Returns and lengths of the episodes that N environments are in the middle of."""

from __future__ import annotations

import numpy as np


class EpisodeSums:
    """Sums since each environment's last end."""

    def __init__(self, num_envs: int) -> None:
        self.returns, self.lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)

    def add(self, reward: np.ndarray, ended: np.ndarray, valid: np.ndarray | None = None) -> list[tuple[float, int]]:
        """Take in a step: rewards (N,) and ends (N,), of which those with `valid` count.

        Returns:
            (return, length) of each episode that ended, in the order of the environments.
        """
        self.returns += reward if valid is None else np.where(valid, reward, 0.0)
        self.lengths += 1 if valid is None else valid
        over = np.flatnonzero(ended)
        if not len(over):
            return []
        finished = list(zip(self.returns[over].tolist(), self.lengths[over].tolist(), strict=True))  # sync: host memory
        self.returns[over], self.lengths[over] = 0.0, 0
        return finished
