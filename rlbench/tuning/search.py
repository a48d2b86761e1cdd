"""The search: from the best of a few starts, one slot after the other, then pairs, races deciding."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rlbench.machine import StealMeter, describe
from rlbench.progress import Progress
from rlbench.results import Row
from rlbench.tuning.candidates import Space
from rlbench.tuning.contender import Candidate, Contender, TimeUp, reason
from rlbench.tuning.finish import FINAL_SHARE
from rlbench.tuning.order import in_order, shares
from rlbench.tuning.pairs import pairs
from rlbench.tuning.race import Race, Standing
from rlbench.tuning.tuned import row_of

COMPILE_S = 40.0  # what a compiled variant must be expected to take before one was
ROOM = 1.5  # times that must be left of the search for one to be tried
AT_ONCE = 4  # pairs in a race


class Search:
    """A search under way.

    Attributes:
        best: the fastest so far.
        relative: of each candidate that was measured, its rate over plain()'s, through the races between them.
        standings, rows, left_out: as in `Tuned`.
    """

    def __init__(
        self,
        space: Space,
        env: Any,
        budget_s: float,
        block_s: float,
        bar: Progress,
        should_stop: Callable[[], bool],
        seed: int = 0,
        on_row: Callable[[Row], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.clock = clock
        self.space, self.env, self.block_s, self.bar, self.seed = space, env, block_s, bar, seed
        self.asked_to_stop, self.on_row = should_stop, on_row or (lambda row: None)
        self.begun, self.budget_s, self.shown = self.clock(), budget_s, 0
        self.ends = self.begun + (1 - FINAL_SHARE) * budget_s
        self.interrupted = False
        self.plain = self.best = space.candidate(space.plain, space.own_threads)
        self.relative: dict[tuple, tuple[Candidate, float]] = {self.plain.key: (self.plain, 1.0)}
        self.lost: set[tuple] = set()  # not to be tried again
        self.contenders: dict[tuple, Contender] = {}
        self.compile_s: dict[frozenset, float] = {}
        self.standings: list[Standing] = []
        self.rows: list[Row] = []
        self.races, self.left_out = 0, []
        self.machine, self.meter = describe(steal_interval_s=0), StealMeter()

    def run(self) -> None:
        try:
            self.race([self.space.candidate(choices, self.space.own_threads) for choices in self.space.starts()])
            while not self.over():
                alone = self._climb()
                if not self._pairs(alone) and not self._naive():
                    break
        except KeyboardInterrupt:
            self.interrupted = True

    def _climb(self) -> dict[tuple[str, str], float]:
        """Change one slot, the threads or a chunk of the best; again while a round brought something.

        Returns the ratio of each change that was no gain, over the best of its time, by slot and variant.
        """
        names = [*self.space.slots, "threads", "chunks"]
        order, changed = in_order(names, self._shares()), True
        alone: dict[tuple[str, str], float] = {}
        while changed and not self.over():
            changed, promise, alone = False, dict.fromkeys(order, 0.0), {}
            for slot in order:
                if self.over():
                    break
                best = self.best
                for standing in self.race([best, *self._rivals(slot)])[1:]:
                    if not standing.why_not:
                        promise[slot] = max(promise[slot], standing.ratio)
                        variant = standing.candidate.choices.to_dict().get(slot)
                        if variant is not None:
                            alone[slot, variant] = standing.ratio
                changed = changed or self.best.key != best.key
            order = sorted(order, key=promise.__getitem__, reverse=True)
        return alone

    def _shares(self) -> dict[str, float]:
        """Of the phases of the best; nothing where it fails, which its next race will tell."""
        try:
            return shares(self.contender(self.best), self.block_s)
        except Exception:
            return {}

    def _rivals(self, slot: str, naive: bool = False) -> list[Candidate]:
        best, space = self.best, self.space
        if slot == "threads":
            made = [space.candidate(best.choices, n, best.config) for n in space.threads if n != best.threads]
        elif slot == "chunks":
            made = list(space.chunked(best))
        else:
            made = [space.candidate(c, best.threads, best.config) for c in space.neighbours(best.choices, slot, naive)]
        return [candidate for candidate in made if candidate.key not in self.lost]

    def _pairs(self, alone: dict[tuple[str, str], float]) -> bool:
        """Change two slots of the best at once; whether one of the pairs was faster."""
        best = self.best
        fresh = [each for each in pairs(self.space, best, alone) if each.key not in self.relative]
        for start in range(0, len(fresh), AT_ONCE):
            if self.over():
                break
            self.race([best, *fresh[start : start + AT_ONCE]])
            if self.best.key != best.key:
                return True
        return False

    def _naive(self) -> bool:
        """Change each slot of the best to what is slow as a rule; whether one of them was faster."""
        best = self.best
        for slot in self.space.slots:
            if not self.over():
                self.race([self.best, *self._rivals(slot, naive=True)])
        return self.best.key != best.key

    def race(self, candidates: Sequence[Candidate]) -> list[Standing]:
        """Race them; the first stays the best where none is faster beyond doubt. Nothing for fewer than two."""
        first = candidates[0]
        affordable = [first, *(each for each in candidates[1:] if self._affordable(each))]
        if len(affordable) < 2:
            return []
        base, *others = (self.contender(each) for each in affordable)
        asked = {"should_stop": self.over, "on_block": self.show, "clock": self.clock}
        race = Race(base, others, block_s=self.block_s, seed=self.seed + self.races, **asked)
        try:
            standings = race.run(self.ends, least=0)
        except TimeUp:  # of the first, which had been closed
            return []
        except Exception as error:
            if first.key == self.plain.key:
                raise
            self._lose(first, reason(error))
            return []
        self.keep(standings)
        above = self.relative[first.key][1]
        for standing in standings[1:]:
            if not standing.why_not:
                self.relative[standing.candidate.key] = standing.candidate, above * standing.ratio
            if standing.dropped or standing.why_not:
                self.lost.add(standing.candidate.key)
        self.best = next((s.candidate for s in standings[1:] if s.verdict == "faster"), first)
        if self.best is not first:
            self.lost.add(first.key)
        for contender in (base, *others):
            if contender.candidate.key not in (self.plain.key, self.best.key):
                contender.close()
        return standings

    def _lose(self, candidate: Candidate, why: str) -> None:
        """It was the best, and fails: the next best takes its place."""
        self.left_out.append(f"{candidate.label}: {why}")
        self.lost.add(candidate.key)
        self.relative.pop(candidate.key, None)
        self.contenders.pop(candidate.key).close()
        self.best = max(self.relative.values(), key=lambda each: each[1])[0]

    def _affordable(self, candidate: Candidate) -> bool:
        """Whether compiling it fits what is left."""
        if not candidate.compiled or candidate.key in self.relative:
            return True
        expected = self.compile_s.get(candidate.compiled, COMPILE_S)
        if self.ends - self.clock() > ROOM * expected:
            return True
        what = ", ".join(f"{slot}={variant}" for slot, variant in sorted(candidate.compiled))
        self.left_out.append(f"{what}: compiling may take {expected:.0f} s, and less than {ROOM:g} times that was left")
        return False

    def contender(self, candidate: Candidate) -> Contender:
        if candidate.key not in self.contenders:
            made = self.contenders[candidate.key] = Contender(candidate, self.env, str(self.space.device))
            made.give_up = self.over
        return self.contenders[candidate.key]

    def keep(self, standings: Sequence[Standing]) -> None:
        """Note a race: its standings, what was compiled, and a row each."""
        for standing in standings:
            compiled = standing.candidate.compiled
            if standing.compile_s:
                self.compile_s[compiled] = max(standing.compile_s, self.compile_s.get(compiled, 0.0))
            row = row_of(standing, self.space, self.races, standings[0], self.machine, self.meter)
            self.standings.append(standing)
            self.rows.append(row)
            self.on_row(row)
        self.races += 1

    def over(self) -> bool:
        """Whether the search is to end: an interrupt, or the time."""
        self.interrupted = self.interrupted or self.asked_to_stop()
        return self.interrupted or self.clock() >= self.ends

    def show(self) -> None:
        now = min(round(self.clock() - self.begun), round(self.budget_s))
        self.bar.advance(now - self.shown, f"best so far: {self.best.label}")
        self.shown = now

    def close(self) -> None:
        for contender in self.contenders.values():
            contender.close()
