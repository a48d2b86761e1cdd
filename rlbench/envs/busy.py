"""An env whose step costs as much as is asked for, to find out from which cost on something pays."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Busy(gymnasium.Env):
    """A step adds up `iterations` numbers in Python. Work, not a wait for a time: where cores are few, it takes longer."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, iterations: int = 0) -> None:
        self.iterations = iterations
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        work(self.iterations)
        return np.zeros(4, np.float32), 0.0, False, False, {}


def work(iterations: int) -> int:
    """The sum of the numbers up to `iterations`, one by one."""
    total = 0
    for number in range(iterations):
        total += number
    return total
