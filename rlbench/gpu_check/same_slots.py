"""Does every variant of every slot that CUDA can run give the CPU's answer?

The expected outcome is that of the plainest variant on the CPU; inputs are the same numbers on both. A slot's own check
decides. Where that asks for equal bits, which two kinds of arithmetic cannot promise, agreement within CROSS_RTOL and
CROSS_ATOL passes as well, and the row says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from rlbench.gpu_check.check import NOT_REACHED, Check, described, missing_package, on_cpu, tensors
from rlbench.measure import NO_CUDA
from rlbench.results import Row
from rlbench.speedups import SPEEDUPS, Speedup

CROSS_RTOL, CROSS_ATOL = 1e-4, 2e-5  # of float32 arithmetic in another order
CPU = torch.device("cpu")
LEFT_OUT = "left out of a quick run, as it takes long to build"
# Slot and variant. They come last, so that a section cut short has seen all that is quick to see.
SLOW_TO_BUILD = {
    ("update", "compiled"),
    ("update", "chunked"),
    ("update", "cuda_graph"),
    ("loop", "fused"),
    ("environments", "async"),
    ("evaluate", "packed_compiled"),
    ("gae", "compiled"),
    ("ppo_update", "compiled"),
}


def same_slots(check: Check) -> Iterator[Row]:
    """A row for each slot and variant at the slot's first size, then at its last one."""
    for at in (0,) if check.quick else (0, -1):
        jobs = [
            (slot, variant) for slot in SPEEDUPS.values() for variant in slot.variants if at == 0 or len(slot.sizes) > 1
        ]
        expected: dict[str, Any] = {}
        for slot, variant in sorted(jobs, key=lambda job: (job[0].name, job[1]) in SLOW_TO_BUILD):
            fields = {"slot": slot.name, "variant": variant, "size": slot.sizes[at]}
            yield _row(check, f"{slot.name}={variant}", slot, fields, expected)


def _row(check: Check, name: str, slot: Speedup, fields: dict[str, Any], expected: dict[str, Any]) -> Row:
    try:
        reason = _reason(check, slot, fields["variant"])
        if reason is not None:
            return check.absent(name, reason, **fields)
        check.note(f"{name} on CPU and CUDA")
        if slot.name not in expected:
            expected[slot.name] = plainest_outcome(slot, fields["size"], check.seed)
        actual = outcome(slot, fields["variant"], fields["size"], check.seed, check.device)
    except Exception as error:  # any fault of a variant is a finding about it
        if reason := missing_package(error):
            return check.absent(name, reason, **fields)
        return check.failed(name, error, same=False, **fields)
    return check.row(name, **fields, **agreement(slot, expected[slot.name], actual))


def _reason(check: Check, slot: Speedup, variant: str) -> str | None:
    """Why a variant is not compared; None where it is."""
    if not check.cuda:
        return NO_CUDA
    if reason := slot.requires(variant, None, None, check.device, None):
        return reason
    if check.quick and (slot.name, variant) in SLOW_TO_BUILD:
        return LEFT_OUT
    return NOT_REACHED if check.over() else None


def outcome(slot: Speedup, variant: str, size: int, seed: int, device: torch.device) -> Any:
    """What one call of a variant gives on a device, brought to the CPU."""
    inputs = slot.make_inputs(size, seed, str(device))
    return on_cpu(slot.exercise(slot.variants[variant], inputs))


def plainest_outcome(slot: Speedup, size: int, seed: int) -> Any:
    """The CPU's outcome of the plainest variant that works here; an import that fails passes to the next one."""
    missing: Exception | None = None
    for variant in slot.variants:
        if slot.requires(variant, None, None, CPU, None) is None:
            try:
                return outcome(slot, variant, size, seed, CPU)
            except ImportError as error:
                missing = missing or error
    raise missing or ValueError(f"no variant of {slot.name} can be used on the CPU")


def agreement(slot: Speedup, expected: Any, actual: Any) -> dict[str, Any]:
    """`same`, and `verdict`: "same", "same but for rounding" or "NOT the same" with the difference as `error`."""
    try:
        slot.check(expected, actual)
    except AssertionError as error:
        if slot.sameness == "bitwise" and _close(expected, actual):
            return {"same": True, "verdict": "same but for rounding"}
        return {"same": False, "verdict": "NOT the same", "error": described(error)}
    return {"same": True, "verdict": "same"}


def _close(expected: Any, actual: Any) -> bool:
    one, other = list(tensors(expected)), list(tensors(actual))
    if len(one) != len(other) or not one:
        return False
    try:
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(b, a, rtol=CROSS_RTOL, atol=CROSS_ATOL, equal_nan=True)
    except AssertionError:
        return False
    return True
