"""When things are due. Counts are of real env steps, of which one iteration takes as many as there are envs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from rlbench.config import DQNConfig


class Every:
    """A period that fires once for each multiple of it that the count has crossed, however large the strides."""

    def __init__(self, period: int, start: int = 0) -> None:
        """Multiples up to and including `start` do not count. A period of 0 never fires."""
        self.period, self.last = period, start

    def crossed(self, step: int) -> int:
        """How many multiples lie in (last call's step, step]."""
        if not self.period or step <= self.last:
            return 0
        count = step // self.period - self.last // self.period
        self.last = step
        return count

    def next(self, step: int) -> int | None:
        """The first multiple after `step`; None for a period that never fires."""
        return (step // self.period + 1) * self.period if self.period else None


def update_points(before: int, now: int, learning_starts: int, train_frequency: int) -> Iterator[int]:
    """The env steps in (before, now], after `learning_starts`, at which a round of updates is due."""
    first = max(before, learning_starts) // train_frequency + 1
    for k in range(first, now // train_frequency + 1):
        yield k * train_frequency


def learning_start(config: DQNConfig, num_envs: int) -> int:
    """`learning_starts`, or later: n-step returns put their first rows into replay when every env has taken n steps."""
    return max(config.learning_starts, (config.n_step - 1) * num_envs)


def warn_without_updates(config: DQNConfig) -> None:
    """Say so where a training is over before its first update."""
    steps = -(-config.total_timesteps // config.num_envs) * config.num_envs
    if any(update_points(0, steps, learning_start(config, config.num_envs), config.train_frequency)):
        return
    n_step = f", n_step={config.n_step}" if config.n_step > 1 else ""
    warnings.warn(
        f"nothing will be learnt: total_timesteps={config.total_timesteps} are over before the first update, which "
        f"learning_starts={config.learning_starts}{n_step} and train_frequency={config.train_frequency} put off.",
        stacklevel=4,
    )


def linear(start: float, end: float, duration: float, step: int) -> float:
    """From `start` to `end` over `duration` steps, then `end`."""
    if step >= duration:
        return end
    return start + (end - start) * step / duration
