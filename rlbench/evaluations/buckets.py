"""Shapes that stay the same while the numbers of states and of actions change: a compiled function has one shape.

Packed actions are filled up to a total out of few; what fills up has id 0 and belongs to a state of its own, one beyond the last,
whose numbers nobody reads. Rows are filled up with zeros to one of more finely spaced numbers, since each costs a row of the
state network.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from rlbench.actions import ActionSets

LEAST_ACTIONS, ACTION_STEPS = 64, 4  # 64, 80, 96, 112, 128, 160, …: a fifth of them fills up at most
LEAST_ROWS, ROW_STEPS = 16, 8  # 16, 18, 20, …, 32, 36, …: from there on a ninth of them at most


class Bucketed(NamedTuple):
    """Packed action sets of R rows, filled up."""

    ids: Tensor  # (A,) int64; 0 where filled up
    states: Tensor  # (A,) int64, the row that each belongs to; R where filled up
    first: Tensor  # (R,) int64, where each row's actions begin


def bucket(total: int, least: int = LEAST_ACTIONS, steps: int = ACTION_STEPS) -> int:
    """The smallest of `least` and all 2^k (1 + j / steps) above it, j = 0 … steps - 1, that `total` fits into."""
    if total <= least:
        return least
    below = 1 << ((total - 1).bit_length() - 1)  # the power of two below it
    step = max(1, below // steps)
    return -(-total // step) * step


def row_bucket(rows: int) -> int:
    """The number of rows that `rows` are filled up to."""
    return bucket(rows, LEAST_ROWS, ROW_STEPS)


def bucketed(legal: ActionSets, rows: int | None = None) -> Bucketed:
    """Action sets of B states as those of `rows` (B where left out) rows, at least B. Waits for no device.

    Rows beyond the B states have no actions, and begin where those of the states end.
    """
    ids, offsets = legal
    states, total = len(offsets) - 1, len(ids)
    rows, size = rows or states, bucket(total)
    ends = torch.cat((offsets, offsets.new_full((rows - states,), total), offsets.new_full((1,), size)))
    row = torch.arange(rows + 1, device=ids.device)
    return Bucketed(
        fill_up(ids, size), torch.repeat_interleave(row, ends.diff(), output_size=size), ends[:rows].contiguous()
    )


def fill_up(tensor: Tensor, rows: int, value: float = 0) -> Tensor:
    """A tensor (B, ...) as (rows, ...), filled up with `value`; the tensor itself where nothing is missing."""
    missing = rows - len(tensor)
    return F.pad(tensor, (0, 0) * (tensor.ndim - 1) + (0, missing), value=value) if missing else tensor
