"""Evaluating states with different numbers of actions, forward and backward: packed beside every other way.

All sides have the same network (128 features, two layers of 128) and are asked the same; before they are timed, each must
give what the loop over states gives. A ratio is the other side's time over that of `packed`, and beside it over that of
`packed_native`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import command
from benchmarks.targets import NOT_SLOWER, cores, judged, target_cell, times_as_fast, unjudged
from benchmarks.text import aligned, interval, number
from rlbench.machine import StealMeter, describe
from rlbench.models.encodings import encode_loop
from rlbench.results import Row, new_row
from rlbench.speedups import evaluate
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, time_paired

KIND = "benchmark-evaluate-sets"
PACKED, AGAIN, NATIVE = "packed", "packed again", "packed_native"
BESIDE = (
    "packed_compiled",
    NATIVE,
    "packed_triton",
)  # packed by other means: there is nothing to be reached against them
# One state at a time, and in it one bit at a time, as the source had it; all others have the bits of `fused`.
SOURCES_LOOP = "loop, bits too"
SEED = 1


@dataclass(frozen=True)
class Case:
    """States with 1 to 20 actions each, `longest` of one in the middle instead; what is to be reached, by side."""

    states: int
    longest: int | None = None
    targets: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        states = f"{self.states:,} state{'s' if self.states > 1 else ''}"
        return states if self.longest is None else f"{states}, one with {self.longest:,}"

    def target(self, side: str) -> float | str | None:
        return None if side in BESIDE else self.targets.get(side, NOT_SLOWER)


JOBS = (
    Case(1),
    Case(16),
    Case(256, targets={"loop": 40.0, "padded": 1.7}),
    Case(4096),
    Case(256, longest=1400),
)


def calls_of(case: Case) -> dict[str, Callable[[], Any]]:
    """A call for each variant that runs on the CPU here, `packed` first; all of them give the same.

    Raises:
        AssertionError: where a variant gives something else than the loop.
    """
    device = torch.device("cpu")
    inputs = evaluate.make_inputs(case.states, SEED, "cpu", case.longest)
    usable = [name for name in evaluate.VARIANTS if evaluate.requires(name, None, None, device, None) is None]
    calls = {name: evaluate.bind(evaluate.VARIANTS[name], inputs) for name in sorted(usable, key=lambda n: n != PACKED)}
    if case.targets:
        model = copy.deepcopy(inputs[0])
        model.encode = encode_loop
        calls[SOURCES_LOOP] = evaluate.bind(evaluate.VARIANTS["loop"], (model, *inputs[1:]))
    expected = calls["loop"]()
    for name, call in calls.items():
        check_same(expected, call(), f"{case.name}, {name}")
    return calls


def check_same(expected: Sequence[Tensor], actual: Sequence[Tensor], what: str) -> None:
    """Log-probabilities, entropies and values within 1e-5; gradients, all together, within a hundredth of their length.

    Of the half million units of 4,096 states some lie so near 0 that rounding turns them on or off, which adds or leaves out
    one state's part of a gradient. An error in a formula is far larger.

    Raises:
        AssertionError: naming `what`.
    """
    for one, other in zip(expected[:3], actual[:3], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5, msg=lambda text: f"{what}: {text}")
    one, other = (torch.cat([gradient.flatten() for gradient in parts[3:]]) for parts in (expected, actual))
    share = float((other - one).norm() / one.norm())
    assert share <= 0.01, f"{what}: the gradients differ by {share:.1%} of their length; accepted is 1 %"


def measure(case: Case, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """A row a side: what `packed`, and `packed_native`, are to it."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    calls = calls_of(case)
    paired = time_paired(
        calls.pop(PACKED),
        calls,
        rounds=rounds,
        min_round_s=command.QUICK_ROUND_S if quick else command.ROUND_S,
        progress=lambda done, total: on_unit(case.name),
    )
    names = {PACKED: BASELINE, **{name: name for name in calls}, AGAIN: BASELINE_AGAIN}
    shared = {"seeds": [SEED], "machine": machine, "meter": meter, "workload": case.name, "quick": quick, "same": True}
    return [
        new_row(KIND, side=side, cores=cores(), **_numbers(paired, side, name, case), **shared)
        for side, name in names.items()
    ]


def _numbers(paired: Paired, side: str, name: str, case: Case) -> Row:
    """`ratio` is the side's time over that of `packed`: above 1, `packed` is faster."""
    own, again, times = paired.times(BASELINE), paired.times(BASELINE_AGAIN), paired.times(name)
    if name == BASELINE:
        ratio = unjudged("what is compared")
    else:
        ratio = judged(times_as_fast(own, again, times), None if side == AGAIN else case.target(side))
    row: Row = {
        "states": case.states,
        "longest": case.longest,
        "baseline": PACKED,
        **ratio,
        "median_us": float(np.median(times)) * 1e6,
        "first_call_s": paired.first_call_s.get(name),
        "rounds": paired.rounds,
        "round_times": times.tolist(),
    }
    return row | _beside(paired, side, times)


def _beside(paired: Paired, side: str, times: np.ndarray) -> Row:
    """The same to `packed_native`, with the control of the same rounds; empty where it does not run here."""
    if NATIVE not in paired.names or side == NATIVE:
        return {"native_ratio": None, "native_low": None, "native_high": None, "native_verdict": None}
    native = paired.times(NATIVE)
    control = native * paired.times(BASELINE_AGAIN) / paired.times(BASELINE)
    found = times_as_fast(native, control, times)
    return {
        "native_ratio": found.ratio,
        "native_low": found.low,
        "native_high": found.high,
        "native_verdict": found.verdict,
    }


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        "evaluate", "side", "there and back", "packed, times as fast", "95 % interval", "A/A band", "verdict on packed",
        "target", "native, times as fast", "95 % interval",
    )  # fmt: skip
    return aligned(head, [_cells(row) for row in rows], {0, 1, 6, 7}, rows)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["workload"],
        row["side"],
        number(row["median_us"], " us"),
        number(row["ratio"], "x"),
        interval(row["ratio_low"], row["ratio_high"]),
        interval(row["aa_low"], row["aa_high"]),
        row["verdict"],
        target_cell(row),
        number(row["native_ratio"], "x"),
        interval(row["native_low"], row["native_high"]),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = command.parse(command.make_parser("evaluate_sets", __doc__), arguments)
    chosen = command.choose(JOBS, options.only)

    def each(case: Case, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(case, options.rounds, options.quick, on_unit)

    return command.run(options, chosen, len(chosen) * options.rounds, each, format_rows)


if __name__ == "__main__":
    sys.exit(main())
