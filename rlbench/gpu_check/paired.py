"""The slots timed in pairs on this device, with few rounds: enough to see what is large, too few to cite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from rlbench.gpu_check.check import KIND, NOT_REACHED, Check, missing_package
from rlbench.gpu_check.same_slots import SLOW_TO_BUILD
from rlbench.measure import measure
from rlbench.results import Row
from rlbench.speedups import SPEEDUPS, Choices, Speedup

ROUNDS, QUICK_ROUNDS = 7, 1
# What a GPU changes most comes first; `evaluate` has a section of its own.
ELSEWHERE = ("evaluate",)
FIRST = (
    "loop",
    "update",
    "ppo_update",
    "upload",
    "games",
    "gae",
    "metrics",
    "transfer",
    "replay",
    "precision",
    "optimizer",
    "features",
    "priorities",
)


def paired_slots(check: Check) -> Iterator[Row]:
    """The rows of `rlbench.measure` for each slot at its first size, then at its last one."""
    names = sorted(
        (name for name in SPEEDUPS if name not in ELSEWHERE),
        key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST),
    )
    for at in (0,) if check.quick else (0, -1):
        for name in names:
            slot = SPEEDUPS[name]
            if at == -1 and len(slot.sizes) < 2:
                continue
            if check.over():
                yield from _absent(check, slot, slot.sizes[at], NOT_REACHED)
                continue
            check.note(f"{name}, size {slot.sizes[at]:,}")
            try:
                yield from _measured(check, slot, slot.sizes[at])
            except Exception as error:  # the other slots go on
                reason = missing_package(error)
                if reason is None:
                    yield check.failed(name, error, slot=name, size=slot.sizes[at])
                else:
                    yield from _absent(check, slot, slot.sizes[at], reason)


def _absent(check: Check, slot: Speedup, size: int, reason: str) -> Iterator[Row]:
    for variant in slot.variants:
        yield check.absent(f"{slot.name}={variant}", reason, slot=slot.name, variant=variant, size=size)


def _measured(check: Check, slot: Speedup, size: int) -> list[Row]:
    rows = measure(
        [slot.name],
        sizes=[size],
        device=check.device,
        rounds=QUICK_ROUNDS if check.quick else ROUNDS,
        quick=True,
        progress=False,
        seed=check.seed,
        speedups={slot.name: _quick_to_build(slot, check.device)} if check.quick else None,
        should_stop=check.over,
    )
    return [as_ours(row) for row in rows]


def _quick_to_build(slot: Speedup, device: torch.device) -> Speedup:
    """The slot without what takes long to build, plain's variant first, which the others are timed against."""
    plain = getattr(Choices.plain(device), slot.name)
    names = [name for name in slot.variants if (slot.name, name) not in SLOW_TO_BUILD]
    return replace(slot, variants={name: slot.variants[name] for name in sorted(names, key=lambda name: name != plain)})


def as_ours(row: Row, section: str = "slots") -> Row:
    """A row of `measure` as one of this check; a package that a bare machine lacks is no fault."""
    row = {**row, "kind": KIND, "section": section, "name": f"{row['slot']}={row['variant']}"}
    reason = missing_package(row["error"])
    if reason:
        row |= {"same": None, "verdict": "not measured", "not_measured": reason, "error": None}
    elif row["not_measured"] and row["not_measured"].startswith("stopped"):
        row["not_measured"] = NOT_REACHED
    return row
