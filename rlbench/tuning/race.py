"""A race: contenders take turns in short blocks; who is clearly slower than the leader is out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rlbench.stats import bootstrap_interval
from rlbench.tuning.contender import Candidate, Contender

BLOCK_S = 0.25
FIRST_ROUNDS, MOST_ROUNDS = 3, 12


@dataclass(frozen=True)
class Standing:
    """How a candidate did against the first of the race, round by round.

    Attributes:
        ratio: median over rounds of its rate over the first's, with a 95 % interval; above 1 is faster.
        aa_low, aa_high: the same for the first timed twice in each round.
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
        if self.low > max(1.0, self.aa_high):
            return "faster"
        return "slower" if self.high < min(1.0, self.aa_low) else "no difference seen"


class Race:
    """Blocks in turns, the order of each round drawn anew.

    Args:
        baseline: what all are compared with; it runs twice in each round.
        others: its rivals.
        rate: what counts, of (env steps, updates, seconds) of a block and its candidate; env steps a second where left out.
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
    ) -> None:
        self.baseline, self.others = baseline, list(others)
        self.block_s, self.clock = block_s, clock
        self.rate = rate or (lambda candidate, steps, updates, seconds: steps / seconds)
        self.order = np.random.default_rng(seed)
        self.rates: dict[int, list[float]] = {id(each): [] for each in [baseline, *self.others]}
        self.again: list[float] = []
        self.out: dict[int, str] = {}  # why it could not run
        self.dropped: set[int] = set()

    def run(self, until: float, rounds: int = MOST_ROUNDS, drop: bool = True) -> list[Standing]:
        """Rounds until the time `until` of the clock, or so many; who raises is out at once. The baseline comes first."""
        for done in range(rounds):
            if done and self.clock() >= until:
                break
            self._round(until)
            if drop and done + 1 >= FIRST_ROUNDS:
                self._drop()
            if not self._alive() and drop:
                break
        return self.standings()

    def _round(self, until: float) -> None:
        runners = [("baseline", self.baseline), ("again", self.baseline), *(("other", each) for each in self._alive())]
        found: list[tuple[str, Contender, float]] = []
        for i in self.order.permutation(len(runners)):
            role, contender = runners[i]
            rate = self._block(contender)
            if rate is not None:
                found.append((role, contender, rate))
            if self.baseline.trainer is not None and self.clock() >= until and self.again:
                return  # a round that is not whole is not kept
        for role, contender, rate in found:
            (self.again if role == "again" else self.rates[id(contender)]).append(rate)

    def _block(self, contender: Contender) -> float | None:
        try:
            return self.rate(contender.candidate, *contender.block(self.block_s))
        except Exception as error:
            if contender is self.baseline:
                raise
            self.out[id(contender)] = f"{type(error).__name__}: {error}"
            return None

    def _alive(self) -> list[Contender]:
        return [each for each in self.others if id(each) not in self.out and id(each) not in self.dropped]

    def _drop(self) -> None:
        """Out is whose interval lies below the leader's median."""
        standings = {id(each): self._standing(each) for each in [self.baseline, *self._alive()]}
        lead = max(standing.ratio for standing in standings.values())
        self.dropped |= {
            number for number, standing in standings.items() if standing.high < lead and number != id(self.baseline)
        }

    def standings(self) -> list[Standing]:
        """Baseline first, then from the fastest to the slowest; those that could not run last."""
        rest = [self._standing(each) for each in self.others]
        return [self._standing(self.baseline), *sorted(rest, key=lambda s: (bool(s.why_not), -s.ratio))]

    def _standing(self, contender: Contender) -> Standing:
        rates, base = np.array(self.rates[id(contender)]), np.array(self.rates[id(self.baseline)])
        rounds = min(len(rates), len(base))
        nothing = (float("nan"),) * 3
        ratio, low, high = _interval(rates[:rounds] / base[:rounds]) if rounds else nothing
        pairs = min(len(self.again), len(base))
        _, aa_low, aa_high = _interval(np.array(self.again[:pairs]) / base[:pairs]) if pairs else nothing
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
            self.out.get(id(contender), "") or ("" if rounds else "the time was up before its first round"),
        )


def _interval(ratios: np.ndarray) -> tuple[float, float, float]:
    """Median and 95 % interval of ratios, on the scale of their logarithms."""
    logs = np.log(ratios)
    low, high = bootstrap_interval(logs, np.median) if len(logs) > 1 else (logs[0], logs[0])
    return float(np.exp(np.median(logs))), float(np.exp(low)), float(np.exp(high))
