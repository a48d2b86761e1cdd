"""Whole trainings under two Choices in paired, interleaved rounds: how much faster, and with what return?

Each round trains under plain, under the selected Choices and under plain again (the A/A control), in a random order and
from one seed, which the next round counts up. What is compared is the training's own clock (`History.train_s`), so that
building envs and evaluating do not dilute the ratio. `timing.compare` gives the verdict.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rlbench.timing import BASELINE, BASELINE_AGAIN, Ratio, compare

SELECTED = "selected"
SIDES = (BASELINE, SELECTED, BASELINE_AGAIN)
CITABLE_ROUNDS = 20

# (side, seed) -> (seconds of training, mean return); None if it was stopped before its end
TrainOnce = Callable[[str, int], "tuple[float, float] | None"]


@dataclass
class Comparison:
    """Every complete round of one comparison. Times in seconds of a whole training, of `steps` env steps.

    Returns are those of a training's last episodes; in a game for two, of its final policy against `eval_opponent`.
    """

    label: str
    variants: Mapping[str, str]  # the slots in use, with the variants selected
    steps: int
    seconds: list[tuple[float, ...]] = field(default_factory=list)  # (rounds, sides), sides as in SIDES
    returns: list[tuple[float, ...]] = field(default_factory=list)  # (rounds, sides)

    @property
    def rounds(self) -> int:
        return len(self.seconds)

    def ratio(self) -> Ratio:
        """Plain's time / the selected Choices' time."""
        base, selected, again = np.array(self.seconds, np.float64).reshape(-1, len(SIDES)).T  # (rounds,) each
        return compare(base, selected, again)

    @property
    def note(self) -> str:
        return "" if self.rounds >= CITABLE_ROUNDS else "quick: do not cite"

    def row(self) -> dict[str, object]:
        """What a table and a ladder show; sps are medians over rounds, returns means over rounds."""
        return {
            "choices": self.label,
            **self.ratio().fields(),
            "rounds": self.rounds,
            "steps": self.steps,
            "sps": self._sps(SELECTED),
            "plain_sps": self._sps(BASELINE),
            "mean_return": self._mean_return(SELECTED),
            "plain_return": self._mean_return(BASELINE),
            "note": self.note,
        }

    def _sps(self, side: str) -> float:
        times = [row[SIDES.index(side)] for row in self.seconds]
        return self.steps / statistics.median(times) if times else float("nan")

    def _mean_return(self, side: str) -> float:
        values = [row[SIDES.index(side)] for row in self.returns]
        known = [value for value in values if value == value]  # NaN where no episode ended
        return statistics.fmean(known) if known else float("nan")


def paired_rounds(
    comparison: Comparison,
    train_once: TrainOnce,
    rounds: int,
    seed: int,
    on_round: Callable[[Comparison], None] = lambda comparison: None,
) -> bool:
    """Fill `comparison` with `rounds` rounds after one warm-up training of either side, which is not kept.

    Returns False if `train_once` gave None: the round in hand is dropped, complete ones are kept.
    """
    for side in (BASELINE, SELECTED):
        if train_once(side, seed) is None:
            return False
    order = np.random.default_rng(seed)
    for number in range(rounds):
        found: dict[str, tuple[float, float]] = {}
        for i in order.permutation(len(SIDES)):
            outcome = train_once(SIDES[i], seed + number)
            if outcome is None:
                return False
            found[SIDES[i]] = outcome
        comparison.seconds.append(tuple(found[side][0] for side in SIDES))
        comparison.returns.append(tuple(found[side][1] for side in SIDES))
        on_round(comparison)
    return True


def trainings_of(rounds: int) -> int:
    """How many trainings `paired_rounds` makes."""
    return 2 + len(SIDES) * rounds


def rounds_of(count: int) -> str:
    """ "1 round" or "20 rounds"."""
    return f"{count} round{'' if count == 1 else 's'}"
