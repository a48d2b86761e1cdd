"""One curve of time per unit of work over a size: at each size all variants are compared, then timed in pairs.

A unit is what a size multiplies: the step of one environment, one row, one update. Ratios are those of times per unit, so
that a baseline may do fewer units than a variant, where more of them would take minutes and cost the same each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from rlbench.experiments.ratios import no_ratio
from rlbench.machine import Machine, StealMeter, describe, resolve_device
from rlbench.measure import NO_CUDA, QUICK_ROUND_S, ROUND_S
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, compare, time_paired


@dataclass(frozen=True)
class Curve:
    """What is measured, in words that a sentence is made of."""

    name: str
    slot: str
    unit: str  # one of
    size_name: str  # of the setting that it is, for sentences
    size_means: str  # what a size counts


@dataclass(frozen=True)
class Case:
    """One variant at one size."""

    call: Callable[[], object]
    units: int  # of work that a call does
    outcome: object  # of first calls, to be compared
    fields: Mapping[str, Any] = field(default_factory=dict)  # of its row


Cases = Mapping[str, Case | str]  # the baseline first; a text is the reason why a variant cannot be measured


@dataclass(frozen=True)
class Setting:
    """How all curves of one measurement are taken."""

    device: str = "auto"
    rounds: int = 20
    quick: bool = False
    seed: int = 1
    progress: bool | None = None

    @property
    def where(self) -> torch.device:
        return resolve_device(self.device)


def trace(
    curve: Curve,
    sizes: Sequence[int],
    cases_at: Callable[[int], Cases],
    check: Callable[[Any, Any], None],
    setting: Setting,
    **fields: Any,
) -> list[Row]:
    """A row for each size and variant, the baseline's among them.

    Row: curve, slot, unit, size, size_name, size_means, variant, baseline, units (in a call), unit_ns with its quartiles over
    rounds (unit_ns_low, unit_ns_high), ratio of times per unit with its interval and A/A band (the baseline's own: the A/A
    pair), verdict, same, rounds, round_times (seconds a call), not_measured, quick, and `fields`.
    """
    machine, rows = describe(steal_interval_s=0), []
    with Progress(setting.rounds * len(sizes), curve.name, "rounds", setting.progress) as bar:
        for number, size in enumerate(sizes, start=1):
            meter = StealMeter()
            cases = cases_at(size)
            named = {"curve": curve.name, "slot": curve.slot, "unit": curve.unit, "size": size}
            named |= {"size_name": curve.size_name, "size_means": curve.size_means}
            named |= {"baseline": next(iter(cases)), "quick": setting.quick, **fields}
            for variant, numbers in _at(cases, check, setting, bar).items():
                row = {**named, "variant": variant, **numbers}
                rows.append(_stamped(row, setting, machine, meter))
            bar.advance(number * setting.rounds - bar.done, f"{curve.size_name} {size:,}")
            del cases  # memory of this size, before that of the next is asked for
    return rows


def _stamped(row: Mapping[str, Any], setting: Setting, machine: Machine, meter: StealMeter) -> Row:
    return new_row("scaling", device=setting.where, seeds=[setting.seed], machine=machine, meter=meter, **row)


def _at(
    cases: Cases, check: Callable[[Any, Any], None], setting: Setting, bar: Progress
) -> dict[str, dict[str, object]]:
    """The numbers of each variant at one size. What differs from the baseline is not timed."""
    baseline, found = next(iter(cases)), {}
    for name, case in cases.items():
        if isinstance(case, str):
            lacks_cuda = "CUDA" in case and setting.where.type != "cuda"
            found[name] = _empty(NO_CUDA if lacks_cuda else case)
        elif reason := _differs(cases[baseline], case, check):
            found[name] = {**_empty(reason), "verdict": "not the same", "not_measured": None, "same": False}
    usable = {name: case for name, case in cases.items() if name not in found and isinstance(case, Case)}
    if baseline not in usable:
        return found
    paired = time_paired(
        usable[baseline].call,
        {name: case.call for name, case in usable.items() if name != baseline},
        rounds=setting.rounds,
        min_round_s=QUICK_ROUND_S if setting.quick else ROUND_S,
        device=setting.where,
        seed=setting.seed,
        progress=lambda done, total: bar.advance(1),
    )
    timed = {name: _numbers(paired, name, case, usable[baseline]) for name, case in usable.items()}
    return {name: found.get(name) or timed[name] for name in cases}


def _differs(expected: Case | str, actual: Case, check: Callable[[Any, Any], None]) -> str | None:
    if isinstance(expected, str):
        return None
    try:
        check(expected.outcome, actual.outcome)
    except AssertionError as error:
        return str(error).strip().splitlines()[0]
    return None


def _empty(reason: str) -> dict[str, object]:
    numbers = no_ratio(None, reason)
    nothing = numbers["ratio"]  # not a number
    return {**numbers, "units": None, "same": None, "unit_ns": nothing, "unit_ns_low": nothing, "unit_ns_high": nothing}


def _numbers(paired: Paired, name: str, case: Case, base: Case) -> dict[str, object]:
    is_base = case is base
    timed = BASELINE if is_base else name
    each = paired.times(timed) * 1e9 / case.units  # (rounds,)
    low, median, high = np.quantile(each, [0.25, 0.5, 0.75])
    plain, again = (paired.times(n) / base.units for n in (BASELINE, BASELINE_AGAIN))
    ratio = compare(plain, again if is_base else paired.times(name) / case.units, again)
    numbers: dict[str, object] = {"unit_ns": float(median), "unit_ns_low": float(low), "unit_ns_high": float(high)}
    numbers |= {**ratio.fields(), "units": case.units, "baseline_units": base.units, "same": True, **case.fields}
    numbers |= {"rounds": paired.rounds, "round_times": paired.times(timed).tolist(), "not_measured": None}
    return {**numbers, "verdict": "baseline"} if is_base else numbers
