"""Measure the slots: is every variant's outcome the same, and if so, how much faster is it than plain()'s variant?

Sameness comes first: a variant whose outcome differs from the plainest one's, or that raises, gets a row with
`same=False` and the error, and is not timed. The others are timed together in paired rounds against the variant that
`Choices.plain()` takes. What cannot be used here gets a row that says why, with empty numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from rlbench.machine import Machine, StealMeter, describe, resolve_device
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import SPEEDUPS, Choices, Speedup
from rlbench.tables import format_table
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, VariantError, synchronize, time_paired

__all__ = ["NO_CUDA", "format_table", "measure"]
NO_CUDA = "needs CUDA: not measured on this machine"
ROUND_S = 0.02
QUICK_ROUNDS, QUICK_ROUND_S = 7, 0.005
EMPTY = dict.fromkeys(("median_us", "ratio", "ratio_low", "ratio_high", "aa_low", "aa_high", "compile_s", "same"))

OnRound = Callable[[int, int], None]


def measure(
    slots: Sequence[str] | None = None,
    *,
    sizes: Sequence[int] | None = None,
    device: str | torch.device = "auto",
    rounds: int = 20,
    quick: bool = False,
    progress: bool = True,
    seed: int = 0,
    speedups: Mapping[str, Speedup] | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Rows of `slots` (default: all) at `sizes` (default: each slot's own), one for each variant.

    `quick` caps the rounds, shortens them, takes each slot's first size, and stamps the rows. A row has `slot, variant,
    baseline, size, device, median_us, ratio, ratio_low, ratio_high, aa_low, aa_high, compile_s, same, verdict, rounds,
    round_times` (seconds a call, one a round), `not_measured` and `error` (text or None), `quick`, and what
    `results.new_row` adds. The baseline's own row holds the A/A pair; its ratio is that of the same code timed twice.
    `compile_s` is the variant's first call beyond a usual one. `on_row` gets each row as soon as it is known;
    `should_stop` ends the measurement, keeping complete rounds. Raises ValueError for an unknown slot or a bad size.
    """
    known = SPEEDUPS if speedups is None else speedups
    setting = _Setting(
        device=resolve_device(device),
        machine=describe(steal_interval_s=0),
        rounds=min(rounds, QUICK_ROUNDS) if quick else rounds,
        round_s=QUICK_ROUND_S if quick else ROUND_S,
        quick=quick,
        seed=seed,
        should_stop=should_stop or (lambda: False),
    )
    plain = Choices.plain(setting.device).to_dict() if speedups is None else {}
    jobs = [
        _Job(slot, size, plain.get(slot.name, next(iter(slot.variants))), setting)
        for slot, size in _plan(known, slots, sizes, quick)
    ]
    return _run(jobs, setting, progress, on_row or (lambda row: None))


def _plan(
    known: Mapping[str, Speedup], slots: Sequence[str] | None, sizes: Sequence[int] | None, quick: bool
) -> list[tuple[Speedup, int]]:
    slots = [slots] if isinstance(slots, str) else slots
    for slot in slots or ():
        if slot not in known:
            raise ValueError(f"there is no slot {slot!r}; slots are {', '.join(known)}")
    for size in sizes or ():
        if size < 1:
            raise ValueError(f"size {size}: sizes are whole numbers from 1")
    wanted = [known[slot] for slot in dict.fromkeys(known if slots is None else slots)]
    given = tuple(dict.fromkeys(sizes or ()))
    return [(slot, size) for slot in wanted for size in (given or (slot.sizes[:1] if quick else slot.sizes))]


def _run(jobs: Sequence[_Job], setting: _Setting, shown: bool, on_row: Callable[[Row], None]) -> list[Row]:
    rows: list[Row] = []
    with Progress(len(jobs) * setting.rounds, "measure", "rounds", shown=None if shown else False) as progress:
        for number, job in enumerate(jobs, start=1):
            if setting.should_stop():
                break
            note = f"{job.speedup.name}, size {job.size}"
            found = job.rows(lambda done, rounds, note=note: progress.advance(1, note))
            progress.advance(number * setting.rounds - progress.done, note)  # rounds that a job did not need
            for row in found:
                on_row(row)
            rows += found
    return rows


@dataclass(frozen=True)
class _Setting:
    """What all slots of one measurement share."""

    device: torch.device
    machine: Machine
    rounds: int
    round_s: float
    quick: bool
    seed: int
    should_stop: Callable[[], bool]


@dataclass
class _Job:
    """One slot at one size."""

    speedup: Speedup
    size: int
    baseline: str
    setting: _Setting
    bound: dict[str, Callable[[], object]] = field(default_factory=dict)
    first_s: dict[str, float] = field(default_factory=dict)
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)  # variant -> (verdict, error)
    barred: dict[str, str] = field(default_factory=dict)  # variant -> reason

    def rows(self, report: OnRound) -> list[Row]:
        """A row for each variant, in the slot's order."""
        meter = StealMeter()
        self._bar_unusable()
        self._compare_outcomes()
        paired = self._time(report)
        return [self._row(variant, paired, meter) for variant in self.speedup.variants]

    def _bar_unusable(self) -> None:
        for variant in self.speedup.variants:
            reason = self.speedup.requires(variant, None, None, self.setting.device, None)
            if reason:
                lacks_cuda = "CUDA" in reason and not self.setting.machine.has_cuda
                self.barred[variant] = NO_CUDA if lacks_cuda else reason

    def _compare_outcomes(self) -> None:
        """Each usable variant's first outcome against that of the plainest usable one."""
        expected: object = None
        reference: str | None = None
        for variant in self.speedup.variants:
            if variant in self.barred:
                continue
            try:
                outcome = self._first_call(variant)
                if reference is None:
                    reference, expected = variant, outcome
                self.speedup.check(expected, outcome)
            except AssertionError as error:
                self.failed[variant] = "not the same", f"differs from {reference}: {error}"
            except Exception as error:  # any fault of a variant is a finding about it, not the end of the measurement
                self.failed[variant] = "failed", f"{type(error).__name__}: {error}"

    def _first_call(self, variant: str) -> object:
        """Bind the variant to inputs of its own and call it once, timed: that is where compilation happens."""
        device = self.setting.device
        inputs = self.speedup.make_inputs(self.size, self.setting.seed, str(device))
        call = self.speedup.bind(self.speedup.variants[variant], inputs)
        synchronize(device)
        start = time.perf_counter()
        outcome = call()
        synchronize(device)
        self.first_s[variant] = time.perf_counter() - start
        self.bound[variant] = call
        return outcome

    def _time(self, report: OnRound) -> Paired | None:
        """Time all variants that passed; one that fails under repetition is reported and left out."""
        setting = self.setting
        while self.baseline not in self.barred and self.baseline not in self.failed:
            left = {v: c for v, c in self.bound.items() if v not in self.failed and v != self.baseline}
            try:
                return time_paired(
                    self.bound[self.baseline],
                    left,
                    rounds=setting.rounds,
                    min_round_s=setting.round_s,
                    device=setting.device,
                    seed=setting.seed,
                    progress=report,
                    should_stop=setting.should_stop,
                )
            except VariantError as error:
                self.failed[self.baseline if error.name in (BASELINE, BASELINE_AGAIN) else error.name] = (
                    "failed",
                    str(error),
                )
        return None

    def _row(self, variant: str, paired: Paired | None, meter: StealMeter) -> Row:
        numbers: Row = {**EMPTY, "verdict": "not measured", "rounds": 0, "round_times": []}
        not_measured, error = self.barred.get(variant), None
        if variant in self.failed:
            numbers["verdict"], error = self.failed[variant]
            numbers["same"] = False
        elif not_measured is None:
            numbers["same"] = True
            if paired is None:
                not_measured = f"its baseline {self.baseline!r} could not be timed"
            elif paired.rounds == 0:
                not_measured = "stopped before a round was complete"
            else:
                numbers |= self._numbers(variant, paired)
        return new_row(
            "measure",
            device=self.setting.device,
            seeds=[self.setting.seed],
            machine=self.setting.machine,
            meter=meter,
            slot=self.speedup.name,
            variant=variant,
            baseline=self.baseline,
            size=self.size,
            **numbers,
            not_measured=not_measured,
            error=error,
            quick=self.setting.quick,
        )

    def _numbers(self, variant: str, paired: Paired) -> Row:
        is_baseline = variant == self.baseline
        name = BASELINE if is_baseline else variant
        ratio = paired.ratio(BASELINE_AGAIN if is_baseline else variant)
        median = paired.median_s(name)
        numbers: Row = {
            "median_us": median * 1e6,
            **ratio.fields(),
            "compile_s": max(0.0, self.first_s[variant] - median),
            "rounds": paired.rounds,
            "round_times": paired.times(name).tolist(),
        }
        if is_baseline:
            numbers |= {"verdict": "baseline", "again_times": paired.times(BASELINE_AGAIN).tolist()}
        return numbers
