"""When things are due. Counts are of real env steps, of which one iteration takes as many as there are envs."""

from __future__ import annotations

from collections.abc import Iterator


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


def update_points(before: int, now: int, learning_starts: int, train_frequency: int) -> Iterator[int]:
    """The env steps in (before, now], after `learning_starts`, at which a round of updates is due."""
    first = max(before, learning_starts) // train_frequency + 1
    for k in range(first, now // train_frequency + 1):
        yield k * train_frequency


def linear(start: float, end: float, duration: float, step: int) -> float:
    """From `start` to `end` over `duration` steps, then `end`."""
    if step >= duration:
        return end
    return start + (end - start) * step / duration
