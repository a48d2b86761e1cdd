"""Transfer: how a batch on the host gets to the device.

A copy from ordinary (pageable) memory goes through a staging buffer of the driver and waits. Pinned memory is copied
directly, and with `non_blocking` the host goes on meanwhile (claim B5). But pinning is itself a copy and an allocation: done
inside the loop it can cost more than it saves; combine it with conversion='preallocated'. On the CPU nothing is transferred.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.speedups.conversion import GIVES_TENSORS
from rlbench.speedups.speedup import Speedup, check_equal


def pageable(batch: Transitions, device: torch.device) -> Transitions:
    """`tensor.to(device)`, field by field. A tensor that is there already is handed on."""
    return Transitions(*(None if t is None else t.to(device) for t in batch))


def pinned(batch: Transitions, device: torch.device) -> Transitions:
    """Copy from pinned memory and wait."""
    return Transitions(*(None if t is None else _pin(t).to(device) for t in batch))


def pinned_non_blocking(batch: Transitions, device: torch.device) -> Transitions:
    """Copy from pinned memory without waiting. Work on the same stream that uses the result comes after the copy."""
    return Transitions(*(None if t is None else _pin(t).to(device, non_blocking=True) for t in batch))


def _pin(tensor: Tensor) -> Tensor:
    """The tensor in pinned memory. PyTorch's pinned allocator frees such memory for use only after its copies are done."""
    return tensor if tensor.is_cuda or tensor.is_pinned() else tensor.pin_memory()


VARIANTS = {"pageable": pageable, "pinned": pinned, "pinned_non_blocking": pinned_non_blocking}


def make_inputs(size: int, seed: int, device: str) -> tuple[Transitions, torch.device]:
    rng = np.random.default_rng(seed)
    wide = [torch.from_numpy(rng.standard_normal((size, 16), np.float32)) for _ in range(2)]
    flat = [torch.from_numpy(rng.standard_normal(size, np.float32)) for _ in range(4)]
    action = torch.from_numpy(rng.integers(0, 3, size))
    batch = Transitions(wide[0], action, flat[0], wide[1], flat[1], flat[2], flat[3])
    return batch, torch.device(device)


def bind(variant: Callable[..., Any], inputs: tuple[Transitions, torch.device]) -> Callable[[], Transitions]:
    batch, device = inputs
    return lambda: variant(batch, device)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant != "pageable" and device.type != "cuda":
        return f"{variant} memory needs CUDA, and this runs on {device.type}; accepted here: pageable"
    if variant != "pageable" and choices is not None and choices.replay in GIVES_TENSORS:
        return (
            f"replay={choices.replay!r} keeps rows on the device, so that no batch is transferred; leave this slot out"
        )
    return None


SPEEDUP = Speedup(
    name="transfer",
    question="What does it cost to bring a batch to the device?",
    summary="Pinned host memory and copies that do not wait. Only where there is a device to copy to.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check_equal,
    requires=requires,
    sameness="bitwise",
    sizes=(128, 4096),
    size_means="rows in a batch",
    claims=("B5",),
)
