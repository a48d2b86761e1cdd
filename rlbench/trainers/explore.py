"""Exploration: each env draws by itself whether to act at random, from numbers that depend on seed and step alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlbench.buffers import RowSpec
from rlbench.config import DQNConfig
from rlbench.envs.spaces import EnvError
from rlbench.random import Purpose, Stream, to_below

Greedy = Callable[[np.ndarray, "np.ndarray | None"], np.ndarray]


class EpsilonGreedy:
    """With probability epsilon a legal action at random, all equally likely; otherwise the greedy one."""

    def __init__(self, spec: RowSpec, config: DQNConfig, num_envs: int) -> None:
        self.num_actions = spec.num_actions
        self.whether = Stream(config.seed, Purpose.EXPLORE, num_envs)
        self.which = Stream(config.seed, Purpose.ACTION, num_envs)

    def __call__(
        self, step: int, epsilon: float, obs: np.ndarray, mask: np.ndarray | None, greedy: Greedy
    ) -> np.ndarray:
        """Actions (N,) int64. The network is asked only where somebody acts greedily."""
        explores = self.whether.uniform(step) < epsilon  # (N,)
        if not explores.any():
            return greedy(obs, mask)
        bits = self.which.bits(step)
        random = to_below(bits, self.num_actions) if mask is None else random_legal(bits, mask)
        return random if explores.all() else np.where(explores, random, greedy(obs, mask))


def random_legal(bits: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """For each row of `mask` (N, A) one of its legal actions (N,), by 32 random bits (N,) int64."""
    count = mask.sum(axis=1)
    if not count.all():
        raise EnvError(
            f"env {int(np.argmin(count))} has no legal action, but its episode goes on: end it or allow one."
        )
    nth = (bits * count) >> 32  # (N,), in 0 … count - 1
    return np.argmax(np.cumsum(mask, axis=1) > nth[:, None], axis=1)
