"""Sets of legal actions of different sizes, packed: one array of 64-bit ids and where each state's begin.

An id is a number of 64 bits, 0 … 2^64 - 1. PyTorch has no shifts for unsigned tensors, so ids are held in int64: those from 2^63
on as the negative numbers with the same bits (two's complement). Bit b is that of value 2^b; bit 63 is the sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

BITS = 64


class ActionError(ValueError):
    """Action sets that cannot be used; the message names the state, what was found and what is accepted."""


class ActionSets(NamedTuple):
    """The legal actions of B states. State i has ids[offsets[i] : offsets[i + 1]], in an order that means nothing."""

    ids: Tensor  # (A,) int64, those of all states one after another
    offsets: Tensor  # (B + 1,) int64, from 0 to A, never falling

    @property
    def counts(self) -> Tensor:
        """How many actions each state has, (B,) int64."""
        return self.offsets.diff()

    def states(self) -> Tensor:
        """The state that each action belongs to, (A,) int64."""
        index = torch.arange(len(self.offsets) - 1, device=self.ids.device)
        return torch.repeat_interleave(index, self.counts, output_size=len(self.ids))

    def to(self, device: str | torch.device, non_blocking: bool = False) -> ActionSets:
        return ActionSets(*(tensor.to(device, non_blocking=non_blocking) for tensor in self))

    def take(self, index: Tensor, total: int | None = None) -> ActionSets:
        """The sets of states `index` (K,) int64, in that order, copied.

        Args:
            total: how many actions they have together, where that is known: on CUDA the host then waits for nothing.
        """
        counts = self.counts[index]
        offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
        total = int(offsets[-1]) if total is None else total  # sync: the size of what is made
        # Action a of the result is action a + shift of these sets, with one shift a state.
        shift = torch.repeat_interleave(self.offsets[index] - offsets[:-1], counts, output_size=total)
        return ActionSets(self.ids.index_select(0, shift.add_(torch.arange(total, device=shift.device))), offsets)

    def slice(self, start: int, stop: int) -> ActionSets:
        """The sets of states start … stop - 1; their ids are not copied."""
        first, last = self.offsets[[start, stop]].tolist()  # sync: where they lie
        return ActionSets(self.ids[first:last], self.offsets[start : stop + 1] - first)


def cat(parts: Sequence[ActionSets]) -> ActionSets:
    """Action sets one after another: those of all states of the first, then of the second, and so on."""
    before, offsets = 0, [parts[0].offsets[:1]]
    for part in parts:
        offsets.append(part.offsets[1:] + before)
        before += len(part.ids)
    return ActionSets(torch.cat([part.ids for part in parts]), torch.cat(offsets))


def pack(lists: Sequence[Iterable[int]], device: str | torch.device = "cpu") -> ActionSets:
    """Action sets from a list a state, each of Python ints, or a NumPy array of uint64 or int64, or an int64 tensor.

    Raises:
        ActionError: naming the state of an id that is no whole number of 64 bits.
    """
    parts = [ids_of(ids, f"state {i}") for i, ids in enumerate(lists)]
    counts = np.array([len(part) for part in parts], np.int64)
    ids = np.concatenate(parts) if parts else np.empty(0, np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
    return ActionSets(torch.from_numpy(ids).to(device), torch.from_numpy(offsets).to(device))


def unpack(sets: ActionSets) -> list[list[int]]:
    """The ids of each state as Python ints, 0 … 2^64 - 1."""
    ids = to_unsigned(sets.ids)
    bounds = sets.offsets.tolist()  # sync: for people
    return [ids[a:b] for a, b in pairwise(bounds)]


def to_unsigned(ids: Tensor) -> list[int]:
    """Ids as the Python ints that they stand for."""
    return [value & (2**BITS - 1) for value in ids.reshape(-1).tolist()]  # sync: for people


def ids_of(ids: Any, where: str = "ids") -> np.ndarray:
    """Ids in any accepted form as int64 of the same bits.

    No detour through floating point, which has 53 bits, and none through int64 for numbers that it does not hold.
    """
    if isinstance(ids, Tensor):
        ids = ids.detach().cpu().numpy()  # sync: packing is the host's work
    if isinstance(ids, np.ndarray) and ids.dtype in (np.int64, np.uint64):
        return np.ascontiguousarray(ids).reshape(-1).view(np.int64).copy()
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        ids = ids.reshape(-1).tolist()
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ActionError(f"{where}: {ids!r} is refused; accepted are the ids of its actions, one after another.")
    values = list(ids)
    for value in values:
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
        if not whole or not 0 <= int(value) < 2**BITS:
            raise ActionError(f"{where}: the id {value!r} is refused; accepted are whole numbers from 0 to 2^64 - 1.")
    return np.array([int(value) for value in values], np.uint64).view(np.int64)


def check_sets(sets: ActionSets, live: Tensor | None = None) -> ActionSets:
    """The sets, looked at once.

    Args:
        live: (B,) bool, which states must have an action; all where left out. A finished game has none.

    Raises:
        ActionError: naming what is wrong, and the state.
    """
    ids, offsets = sets
    if (
        ids.dtype != torch.int64
        or offsets.dtype != torch.int64
        or ids.ndim != 1
        or offsets.ndim != 1
        or not len(offsets)
    ):
        raise ActionError(
            f"ids {tuple(ids.shape)} {ids.dtype} and offsets {tuple(offsets.shape)} {offsets.dtype} are refused; accepted: "
            "(A,) and (B + 1,), both torch.int64."
        )
    counts = offsets.diff()
    first, last = int(offsets[0]), int(offsets[-1])  # sync: a check
    if first != 0 or last != len(ids):
        raise ActionError(f"offsets run from {first} to {last}; accepted: from 0 to the number of ids, {len(ids)}.")
    if bool((counts < 0).any()):  # sync: a check
        raise ActionError(f"offsets fall behind state {int(counts.lt(0).nonzero()[0])}; accepted: never falling.")
    empty = counts == 0 if live is None else (counts == 0) & live
    if bool(empty.any()):  # sync: a check
        raise ActionError(
            f"state {int(empty.nonzero()[0])} has no legal action to choose: its game must have ended before."
        )
    return sets
