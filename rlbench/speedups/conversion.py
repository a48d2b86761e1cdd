"""Conversion: how sampled rows become tensors on the host.

Making a tensor of every row and stacking those costs a Python call a row and field. Stacking once in NumPy and sharing the
memory costs one call a field. Writing into memory that is kept saves the allocation, too, and can be pinned (claims A10,
C5). Rows that are already in one array gain little from the last step; a replay of tensors needs no conversion at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.speedups.speedup import Speedup, check_equal

DTYPES = Transitions(
    obs=np.float32,
    action=np.int64,
    reward=np.float32,
    next_obs=np.float32,
    terminated=np.float32,
    truncated=np.float32,
    discount=np.float32,
    next_mask=np.float32,
    weight=np.float32,
)
GIVES_TENSORS = ("ring_torch", "ring_frames")  # variants of the slot replay


class EachSample:
    """A tensor for every row, then a stack: `torch.stack([torch.as_tensor(row) …])`."""

    def __init__(self, pinned: bool = False) -> None:
        self.pinned = pinned  # whether what comes out lies in pinned memory already

    def __call__(self, rows: Transitions) -> Transitions:
        return Transitions(*(self._field(f, t) for f, t in zip(rows, DTYPES, strict=True)))

    def _field(self, items: Any, dtype: Any) -> Tensor | None:
        if items is None:
            return None
        stacked = torch.stack([torch.as_tensor(np.asarray(item, dtype)) for item in items])
        return stacked.pin_memory() if self.pinned else stacked


class StackOnce:
    """One NumPy stack a field, then a tensor that shares its memory; an array is taken as it is."""

    def __init__(self, pinned: bool = False) -> None:
        self.pinned = pinned

    def __call__(self, rows: Transitions) -> Transitions:
        return Transitions(*(self._field(f, t) for f, t in zip(rows, DTYPES, strict=True)))

    def _field(self, items: Any, dtype: Any) -> Tensor | None:
        if items is None:
            return None
        tensor = torch.from_numpy(np.ascontiguousarray(items, dtype))
        return tensor.pin_memory() if self.pinned else tensor


class Preallocated:
    """Stack into memory that is kept between calls, pinned if asked for.

    What one call hands out is overwritten by the next but one. On CUDA a buffer is written again only after the device has
    taken the copy that was enqueued from it, so that a non-blocking transfer is safe.
    """

    def __init__(self, pinned: bool = False) -> None:
        self.pinned = pinned
        self.calls = 0
        self.buffers: list[dict[str, Tensor]] = [{}, {}]
        self.taken: list[torch.cuda.Event | None] = [None, None]

    def __call__(self, rows: Transitions) -> Transitions:
        turn = self.calls % 2
        if self.pinned:
            self._wait_for_copies(turn)
        self.calls += 1
        fields = zip(Transitions._fields, rows, DTYPES, strict=True)
        return Transitions(*(self._field(turn, name, items, dtype) for name, items, dtype in fields))

    def _wait_for_copies(self, turn: int) -> None:
        """Mark the end of the copies from the other buffer, whose transfer has been enqueued by now; await this one's."""
        if self.calls:
            self.taken[1 - turn] = event = torch.cuda.Event()
            event.record()
        if (mine := self.taken[turn]) is not None:
            mine.synchronize()  # sync: this memory is about to be overwritten

    def _field(self, turn: int, name: str, items: Any, dtype: Any) -> Tensor | None:
        if items is None:
            return None
        shape = (len(items), *np.shape(items[0]))
        buffer = self.buffers[turn].get(name)
        if buffer is None or buffer.shape != shape:
            # Zeros, not empty: their type comes from NumPy's name for it.
            buffer = torch.from_numpy(np.zeros(shape, dtype))
            buffer = self.buffers[turn][name] = buffer.pin_memory() if self.pinned else buffer
        out = buffer.numpy()  # sync: host memory, a view
        if isinstance(items, np.ndarray):
            np.copyto(out, items, casting="unsafe")
        elif out.ndim == 1:
            out[:] = items
        else:
            np.stack(items, out=out)
        return buffer


VARIANTS = {"each_sample": EachSample, "stack_once": StackOnce, "preallocated": Preallocated}


def make_inputs(size: int, seed: int, device: str) -> Transitions:
    """`size` rows as a deque hands them out: lists of arrays and numbers."""
    rng = np.random.default_rng(seed)

    def arrays(width: int) -> list[np.ndarray]:
        return list(rng.standard_normal((size, width), np.float32))

    def flags() -> list[float]:
        return rng.integers(0, 2, size).astype(float).tolist()

    return Transitions(
        obs=arrays(16),
        action=rng.integers(0, 3, size).tolist(),
        reward=rng.standard_normal(size).tolist(),
        next_obs=arrays(16),
        terminated=flags(),
        truncated=flags(),
        discount=[0.99] * size,
        next_mask=None,
    )


def bind(variant: Callable[..., Any], inputs: Transitions) -> Callable[[], Transitions]:
    convert = variant()
    return lambda: convert(inputs)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if choices is not None and choices.replay in GIVES_TENSORS:
        return f"replay={choices.replay!r} hands out tensors, which need no conversion; leave this slot out"
    return None


SPEEDUP = Speedup(
    name="conversion",
    question="What does it cost to make tensors of sampled rows?",
    summary="One stack a field instead of one tensor a row. Matters for a replay of Python objects; a ring has stacked already.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check_equal,
    requires=requires,
    sameness="bitwise",
    sizes=(32, 128, 1024),
    size_means="rows in a batch",
    claims=("A10", "C5"),
)
