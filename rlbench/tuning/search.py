"""The search: from the best of a few starts, one slot after the other, races deciding; then a check that the winner learns the
same as plain()."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from rlbench.envs.source import env_source
from rlbench.machine import StealMeter, describe, resolve_device
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.tuning.agreement import MOST, distance
from rlbench.tuning.candidates import Space
from rlbench.tuning.contender import Candidate, Contender
from rlbench.tuning.race import Race, Standing

COMPILE_S = 40.0  # what a compiled variant must be expected to take; tried only where the budget has twice that
FINAL_SHARE = 0.3  # of the budget, for the winner against plain()


@dataclass
class Tuned:
    """What was found.

    Attributes:
        choices, threads: the fastest that learns the same.
        final: against plain() on the run's own threads, from the last race.
        standings: of all races, in order; ratios are against the first of each race.
        left_out: candidates that were not tried, and why.
        rejected: those that did not learn what plain() learns: label and distance.
    """

    choices: Choices
    threads: int
    config: Any
    device: str
    final: Standing
    distance: float
    standings: list[Standing] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    rejected: list[tuple[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    rows: list[Row] = field(default_factory=list)


def tune(
    config: Any,
    env: Any = "CartPole-v1",
    *,
    device: str = "auto",
    budget_s: float = 120.0,
    slots: Sequence[str] | None = None,
    statistical: bool = False,
    threads: Sequence[int] | None = None,
    block_s: float = 0.25,
    progress: bool | None = None,
    should_stop: Callable[[], bool] | None = None,
    seed: int = 0,
) -> Tuned:
    """Search for about `budget_s` seconds; the last block may go beyond.

    Args:
        config, env, device: the training, as for `DQN` and `PPO`.
        slots: those that may be changed; all where left out.
        statistical: try variants that change numbers by more than rounding, such as lower precision; the check is left out then.
        threads: numbers of torch threads to try; 1 and the physical cores where left out.
        should_stop: asked between races; what is best so far is then checked and returned.

    Raises ChoiceError for a slot that the trainer does not have.
    """
    where = resolve_device(device)
    space = Space(config, env_source(env), where, slots=slots, statistical=statistical, threads=threads)
    with Progress(round(budget_s), "tune", "s", progress) as bar:
        return _Search(space, env, budget_s, block_s, bar, should_stop or (lambda: False), seed, statistical).run()


class _Search:
    def __init__(
        self,
        space: Space,
        env: Any,
        budget_s: float,
        block_s: float,
        bar: Progress,
        should_stop: Callable[[], bool],
        seed: int,
        statistical: bool,
    ) -> None:
        self.space, self.env, self.block_s, self.bar = space, env, block_s, bar
        self.should_stop, self.seed, self.statistical = should_stop, seed, statistical
        self.begun, self.budget_s, self.shown = time.perf_counter(), budget_s, 0
        self.search_ends = self.begun + (1 - FINAL_SHARE) * budget_s
        self.own_threads = torch.get_num_threads()
        self.contenders: dict[tuple, Contender] = {}
        self.standings: list[Standing] = []
        self.left_out: list[str] = []
        self.machine, self.meter = describe(steal_interval_s=0), StealMeter()

    def run(self) -> Tuned:
        interrupted = False
        ranking = [self.space.candidate(self.space.plain, self.own_threads)]
        try:
            ranking = self._starts()
            ranking = self._climb(ranking)
        except KeyboardInterrupt:
            interrupted = True
        try:
            return self._finish(ranking, interrupted or self.should_stop())
        finally:
            torch.set_num_threads(self.own_threads)
            for contender in self.contenders.values():
                contender.close()

    def _starts(self) -> list[Candidate]:
        """plain(), fast(), and the loops, as far as they are free to be chosen."""
        space, plain = self.space, self.space.plain
        starts = [plain]
        fast = Choices.fast(space.device).usable(space.config, space.device, space.source).to_dict()
        named = space.of({**plain.to_dict(), **{slot: fast[slot] for slot in space.slots}})
        apart = space.of({**plain.to_dict(), **{s: fast[s] for s in space.slots if s != "loop"}})
        starts += [choices for choices in (named, apart) if choices is not None]
        if "loop" in space.slots:
            starts += list(space.neighbours(plain, "loop"))
        return self._race([space.candidate(choices, self.own_threads) for choices in dict.fromkeys(starts)])

    def _climb(self, ranking: list[Candidate]) -> list[Candidate]:
        """Change one slot, or the threads, of the best; again from the start while a round brought something."""
        changed = True
        while changed and not self._time_up():
            changed = False
            for slot in [*self.space.slots, "threads"]:
                if self._time_up():
                    break
                best = ranking[0]
                rivals = self._rivals(best, slot)
                if not rivals:
                    continue
                found = self._race([best, *rivals])
                if found[0].key != best.key:
                    changed = True
                ranking = [*found, *(each for each in ranking if each.key not in {c.key for c in found})]
        return ranking

    def _rivals(self, best: Candidate, slot: str) -> list[Candidate]:
        if slot == "threads":
            return [self.space.candidate(best.choices, n) for n in self.space.threads if n != best.threads]
        seen = {standing.candidate.key for standing in self.standings if standing.dropped}
        made = [self.space.candidate(choices, best.threads) for choices in self.space.neighbours(best.choices, slot)]
        return [candidate for candidate in made if candidate.key not in seen]

    def _race(self, candidates: list[Candidate]) -> list[Candidate]:
        """The candidates from the fastest to the slowest, the first of them where no difference was seen."""
        affordable = [candidates[0], *(each for each in candidates[1:] if self._affordable(each))]
        if len(affordable) < 2:
            return affordable
        base, *others = (self._contender(each) for each in affordable)
        standings = Race(base, others, block_s=self.block_s, seed=self.seed + len(self.standings)).run(self.search_ends)
        self.standings += standings
        self._show()
        ran = [standing for standing in standings[1:] if not standing.why_not]
        faster = [standing.candidate for standing in ran if standing.ratio > 1 and standing.low > 1]
        rest = [standing.candidate for standing in ran if not (standing.ratio > 1 and standing.low > 1)]
        return [*faster, base.candidate, *rest]

    def _affordable(self, candidate: Candidate) -> bool:
        """Whether compiling it fits what is left."""
        if not candidate.compiles or candidate.key in self.contenders:
            return True
        if self.search_ends - time.perf_counter() > 2 * COMPILE_S:
            return True
        self.left_out.append(
            f"{candidate.label}: compiling may take {COMPILE_S:.0f} s, and the budget has less than twice that"
        )
        return False

    def _contender(self, candidate: Candidate) -> Contender:
        if candidate.key not in self.contenders:
            self.contenders[candidate.key] = Contender(candidate, self.env, str(self.space.device))
        return self.contenders[candidate.key]

    def _time_up(self) -> bool:
        self._show()
        return time.perf_counter() >= self.search_ends or self.should_stop()

    def _show(self) -> None:
        now = min(round(time.perf_counter() - self.begun), round(self.budget_s))
        self.bar.advance(now - self.shown)
        self.shown = now

    def _finish(self, ranking: list[Candidate], interrupted: bool) -> Tuned:
        """The best that learns the same, against plain()."""
        rejected: list[tuple[str, float]] = []
        plain = self.space.candidate(self.space.plain, self.own_threads)
        for best in [*ranking, plain]:
            apart = 0.0 if self.statistical or best.choices == self.space.plain else self._distance(best)
            if apart <= MOST:
                break
            rejected.append((best.label, apart))
        base = self._contender(plain)
        others = [] if best.key == plain.key else [self._contender(best)]
        ends = max(self.begun + self.budget_s, time.perf_counter() + 6 * self.block_s)
        final = Race(base, others, block_s=self.block_s, seed=self.seed + 1).run(ends, rounds=20, drop=False)[-1]
        self._show()
        tuned = Tuned(
            *(best.choices, best.threads, self.space.config, str(self.space.device), final, apart),
            *(self.standings, self.left_out, rejected, time.perf_counter() - self.begun, interrupted),
        )
        tuned.rows = [self._row(standing) for standing in [*self.standings, final]]
        return tuned

    def _distance(self, candidate: Candidate) -> float:
        torch.set_num_threads(candidate.threads)
        return distance(self.space.config, candidate.choices, self.space.plain, self.env, str(self.space.device))

    def _row(self, standing: Standing) -> Row:
        names = (
            "rate",
            "ratio",
            "low",
            "high",
            "aa_low",
            "aa_high",
            "rounds",
            "first_s",
            "compile_s",
            "dropped",
            "why_not",
        )
        fields = {name: getattr(standing, name) for name in names}
        fields |= {
            "label": standing.candidate.label,
            "verdict": standing.verdict,
            "torch_threads": standing.candidate.threads,
        }
        fields["choices"] = self.space.in_use(standing.candidate.choices)
        return new_row(
            "tune",
            device=self.space.device,
            seeds=[self.space.config.seed],
            machine=self.machine,
            meter=self.meter,
            **fields,
        )
