"""A race: contenders take turns in short blocks; who is clearly slower than the leader is out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rlbench.stats import bootstrap_interval
from rlbench.timing import MIN_ROUNDS
from rlbench.tuning.contender import Candidate, Contender, reason

BLOCK_S = 0.25
FIRST_ROUNDS, MOST_ROUNDS = 3, 12
GROSS, GROSS_ROUNDS = (
    0.4,
    2,
)  # of the leader's rate in each of so many rounds: out, and after one where its block lasted long


@dataclass(frozen=True)
class Standing:
    """How a candidate did against the first of the race, round by round.

    Attributes:
        ratio: median over rounds of its rate over the first's, with a 95 % interval; above 1 is faster.
        aa_low, aa_high: the band around 1 that the first, timed twice in each round, shows against itself.
        rounds: in which it took part; `dropped` whether it was out before the end.
        why_not: why it could not run, "" otherwise.
    """

    candidate: Candidate
    rate: float
    ratio: float
    low: float
    high: float
    aa_low: float
    aa_high: float
    rounds: int
    first_s: float
    compile_s: float
    dropped: bool = False
    why_not: str = ""

    @property
    def verdict(self) -> str:
        if self.why_not:
            return "not measured"
        if self.rounds < FIRST_ROUNDS:
            return "too few rounds"
        if self.low > 1 and self.ratio > self.aa_high:  # as `rlbench.timing.compare` has it
            return "faster"
        return "slower" if self.high < 1 and self.ratio < self.aa_low else "no difference seen"


class Race:
    """Blocks in turns, the order of each round drawn anew.

    Args:
        baseline: what all are compared with; it runs twice in each round.
        others: its rivals.
        rate: what counts, of (env steps, updates, seconds) of a block and its candidate; env steps a second where left out.
        should_stop: asked after each block; a round that is not whole is not kept.
        on_block: called after each block.
    """

    def __init__(
        self,
        baseline: Contender,
        others: Sequence[Contender],
        *,
        block_s: float = BLOCK_S,
        seed: int = 0,
        rate: Callable[[Candidate, int, int, float], float] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        should_stop: Callable[[], bool] = lambda: False,
        on_block: Callable[[], None] = lambda: None,
    ) -> None:
        self.baseline, self.others = baseline, list(others)
        self.should_stop, self.on_block = should_stop, on_block
        self.block_s, self.clock = block_s, clock
        self.rate = rate or (lambda candidate, steps, updates, seconds: steps / seconds)
        self.order = np.random.default_rng(seed)
        self.rates: dict[int, list[float]] = {id(each): [] for each in [baseline, *self.others]}
        self.lasted: dict[int, float] = {}  # seconds of the last block
        self.again: list[float] = []
        self.out: dict[int, str] = {}  # why it could not run
        self.dropped: set[int] = set()

    def run(self, until: float, rounds: int = MOST_ROUNDS, drop: bool = True, least: int = 1) -> list[Standing]:
        """Rounds until the time `until` of the clock, or so many; who raises is out at once. The baseline comes first.

        Args:
            drop: whether the clearly slower leave, and the race ends when there is a clear winner.
            least: rounds that are run whatever the clock says.

        Raises what the baseline raises.
        """
        for done in range(rounds):
            if not self._round(until if done >= least else math.inf):
                break
            if drop:
                self._drop(done + 1)
            if drop and self._decided(done + 1):
                break
        return self.standings()

    def _round(self, until: float) -> bool:
        """Whether it was whole; one that is not is not kept."""
        runners = [("baseline", self.baseline), ("again", self.baseline), *(("other", each) for each in self._alive())]
        found: list[tuple[str, Contender, float]] = []
        for i in self.order.permutation(len(runners)):
            if self.clock() >= until or self.should_stop():
                return False
            role, contender = runners[i]
            rate = self._block(contender)
            self.on_block()
            if rate is not None:
                found.append((role, contender, rate))
        for role, contender, rate in found:
            (self.again if role == "again" else self.rates[id(contender)]).append(rate)
        return True

    def _decided(self, rounds: int) -> bool:
        """Whether nobody is left, or one alone that is faster beyond doubt."""
        alive = self._alive()
        return not alive or (len(alive) == 1 and rounds >= MIN_ROUNDS and self._standing(alive[0]).verdict == "faster")

    def _block(self, contender: Contender) -> float | None:
        try:
            steps, updates, seconds = contender.block(self.block_s)
            self.lasted[id(contender)] = seconds
            return self.rate(contender.candidate, steps, updates, seconds)
        except Exception as error:
            if contender is self.baseline:
                raise
            self.out[id(contender)] = reason(error)
            return None

    def _alive(self) -> list[Contender]:
        return [each for each in self.others if id(each) not in self.out and id(each) not in self.dropped]

    def _drop(self, rounds: int) -> None:
        """Out is whose interval against the leader lies below 1, and below what the baseline shows against itself."""
        rates = {id(each): np.array(self.rates[id(each)]) for each in [self.baseline, *self._alive()]}
        lead = max(rates, key=lambda number: np.median(rates[number] / rates[id(self.baseline)]))
        band, _ = self._control()
        for number in rates.keys() - {lead, id(self.baseline)}:
            ratios = rates[number] / rates[lead]
            gross = ratios.max() < GROSS and (rounds >= GROSS_ROUNDS or self.lasted[number] > 2 * self.block_s)
            if gross or (rounds >= FIRST_ROUNDS and _interval(ratios)[2] < band):
                self.dropped.add(number)

    def _control(self) -> tuple[float, float]:
        """The band of the baseline against itself, even on both sides of 1 on the scale of logarithms."""
        base = np.array(self.rates[id(self.baseline)])
        if not len(base):
            return math.nan, math.nan
        _, low, high = _interval(np.array(self.again) / base)
        band = max(abs(math.log(low)), abs(math.log(high)))
        return math.exp(-band), math.exp(band)

    def standings(self) -> list[Standing]:
        """Baseline first, then from the fastest to the slowest; those that could not run, or had no round, last."""
        rest = [self._standing(each) for each in self.others]
        return [self._standing(self.baseline), *sorted(rest, key=lambda s: (bool(s.why_not), -s.ratio))]

    def _standing(self, contender: Contender) -> Standing:
        rates, base = np.array(self.rates[id(contender)]), np.array(self.rates[id(self.baseline)])
        rounds = min(len(rates), len(base))
        nothing = (float("nan"),) * 3
        ratio, low, high = _interval(rates[:rounds] / base[:rounds]) if rounds else nothing
        aa_low, aa_high = self._control()
        return Standing(
            contender.candidate,
            float(np.median(rates)) if len(rates) else float("nan"),
            ratio,
            low,
            high,
            aa_low,
            aa_high,
            rounds,
            contender.first_s,
            contender.compile_s,
            id(contender) in self.dropped,
            self.out.get(id(contender), "") or ("" if rounds else "it ended before the first round was whole"),
        )


def _interval(ratios: np.ndarray) -> tuple[float, float, float]:
    """Median and 95 % interval of ratios, on the scale of their logarithms."""
    logs = np.log(ratios)
    low, high = bootstrap_interval(logs, np.median) if len(logs) > 1 else (logs[0], logs[0])
    return float(np.exp(np.median(logs))), float(np.exp(low)), float(np.exp(high))
