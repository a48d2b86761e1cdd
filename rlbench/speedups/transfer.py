"""Transfer: how a batch on the host gets to the device.

A copy from ordinary (pageable) memory goes through a staging buffer of the driver and waits. Pinned memory is copied
directly, and with `non_blocking` the host goes on meanwhile (claim B5). But pinning is itself a copy and an allocation: done
inside the loop it can cost more than it saves; DQN combines it with conversion='preallocated'. PPO with
upload='whole_rollout_once' makes one copy a round, otherwise one a minibatch. On the CPU nothing is transferred.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.speedups.conversion import GIVES_TENSORS
from rlbench.speedups.speedup import Speedup, check_equal

Batch = TypeVar("Batch", bound=tuple)  # Transitions, or Decisions with action sets, a mask or neither


def pageable(batch: Batch, device: torch.device) -> Batch:
    """`tensor.to(device)`, field by field. A tensor that is there already is handed on."""
    return moved(batch, lambda tensor: tensor.to(device))


def pinned(batch: Batch, device: torch.device) -> Batch:
    """Copy from pinned memory and wait."""
    return moved(batch, lambda tensor: _pin(tensor).to(device))


def pinned_non_blocking(batch: Batch, device: torch.device) -> Batch:
    """Copy from pinned memory without waiting. Work on the same stream that uses the result comes after the copy."""
    return moved(batch, lambda tensor: _pin(tensor).to(device, non_blocking=True))


def moved(batch: Any, move: Callable[[Tensor], Tensor]) -> Any:
    """A named tuple like `batch` of moved tensors; None stays None, and a named tuple inside is moved likewise."""
    if isinstance(batch, Tensor):
        return move(batch)
    return None if batch is None else type(batch)(*(moved(part, move) for part in batch))


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
    if getattr(config, "trainer", "dqn") == "ppo":
        return on_device_already(choices, device, env)
    if variant != "pageable" and choices is not None and choices.replay in GIVES_TENSORS:
        return (
            f"replay={choices.replay!r} keeps rows on the device, so that no batch is transferred; leave this slot out"
        )
    return None


def on_device_already(choices: Any, device: torch.device, env: Any) -> str | None:
    """Why nothing is brought to the device where games hand out what lies there, however they are stepped."""
    if device.type != "cuda" or choices is None or env is None or env.game is None:
        return None
    games = choices.to_dict().get("games")
    return f"games={games!r} collects on the device, so that nothing is brought there; leave this slot out"


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
    workloads=("dqn", "ppo"),
    claims=("B5",),
)
