"""How fast is a policy asked about states with different numbers of actions, forward and backward, on this device?

Timed in pairs against plain's `padded`. One state at a time is timed at the smallest size alone: at the largest a call would
take a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rlbench.gpu_check.check import NOT_REACHED, Check
from rlbench.gpu_check.paired import as_ours
from rlbench.gpu_check.same_slots import LEFT_OUT, SLOW_TO_BUILD
from rlbench.measure import measure
from rlbench.results import Row
from rlbench.speedups import SPEEDUPS

SIZES, QUICK_SIZES = (256, 4_096, 65_536), (16,)
VARIANTS = ("padded", "packed", "packed_native", "packed_triton", "grouped", "packed_compiled")
SMALL_ALONE = "loop"
ROUNDS, QUICK_ROUNDS = 7, 1
TOO_SLOW = "one state at a time takes too long at this size"


def action_sets(check: Check) -> Iterator[Row]:
    """The rows of `rlbench.measure` for each size."""
    for size in QUICK_SIZES if check.quick else SIZES:
        left_out = {SMALL_ALONE: TOO_SLOW} if size > SIZES[0] else {}
        if check.quick:
            left_out |= {name: LEFT_OUT for name in VARIANTS if ("evaluate", name) in SLOW_TO_BUILD}
        names = [name for name in (*VARIANTS, SMALL_ALONE) if name not in left_out]
        if check.over():
            left_out, names = dict.fromkeys((*VARIANTS, SMALL_ALONE), NOT_REACHED), []
        for name, reason in left_out.items():
            yield check.absent(f"evaluate={name}", reason, slot="evaluate", variant=name, size=size)
        if names:
            check.note(f"evaluate, {size:,} states")
            try:
                yield from timed(check, size, names)
            except Exception as error:  # out of memory at one size does not take the others with it
                yield check.failed("evaluate", error, slot="evaluate", size=size)


def timed(check: Check, size: int, names: list[str]) -> list[Row]:
    """A row for each variant; the first is what the others are timed against."""
    slot = SPEEDUPS["evaluate"]
    rows = measure(
        ["evaluate"],
        sizes=[size],
        device=check.device,
        rounds=QUICK_ROUNDS if check.quick else ROUNDS,
        quick=True,
        progress=False,
        seed=check.seed,
        speedups={"evaluate": replace(slot, variants={name: slot.variants[name] for name in names})},
        should_stop=check.over,
    )
    return [as_ours(row, check.section) for row in rows]
