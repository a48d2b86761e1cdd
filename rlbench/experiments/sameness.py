"""Does every variant of a slot give the plainest one's answer, over sizes and seeds?"""

from __future__ import annotations

from collections.abc import Sequence

from rlbench.machine import resolve_device
from rlbench.results import Row
from rlbench.speedups import Speedup


def same_answers(slot: Speedup, sizes: Sequence[int], seeds: Sequence[int], device: str = "auto") -> list[Row]:
    """A row for each variant, size and seed: slot, variant, size, seed, same (None where it cannot run here), note."""
    where = resolve_device(device)
    reasons = {name: slot.requires(name, None, None, where, None) for name in slot.variants}
    usable = [name for name, reason in reasons.items() if reason is None]
    rows: list[Row] = []
    for size in sizes:
        for seed in seeds:
            inputs = [slot.make_inputs(size, seed, str(where)) for _ in slot.variants]
            outcomes = {name: slot.exercise(slot.variants[name], inputs.pop()) for name in usable}
            for name, reason in reasons.items():
                same, note = (None, reason) if reason else _check(slot, outcomes[usable[0]], outcomes[name])
                rows.append(
                    {"slot": slot.name, "variant": name, "size": size, "seed": seed, "same": same, "note": note}
                )
    return rows


def _check(slot: Speedup, expected: object, actual: object) -> tuple[bool, str]:
    try:
        slot.check(expected, actual)
    except AssertionError as error:
        return False, str(error).strip().splitlines()[0]
    return True, ""
