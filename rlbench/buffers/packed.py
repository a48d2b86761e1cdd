"""One row of float32 for a transition: obs | next_obs | action, reward, terminated, truncated, discount | next_mask.

An action survives float32 exactly, being far below 2^24. Packed rows are moved, gathered and handed to compiled or native code
as one block of memory, and their fields are views of its columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.buffers.rows import SCALARS, RowSpec


class Columns(NamedTuple):
    """Where the fields of a packed row begin, and how wide a row is."""

    obs: int
    next_obs: int
    action: int
    reward: int
    terminated: int
    truncated: int
    discount: int
    next_mask: int
    width: int  # W


def columns(spec: RowSpec) -> Columns:
    """The first column of each field. `next_mask` has no columns where `spec.masked` is False."""
    scalars = 2 * spec.obs_size
    mask = scalars + len(SCALARS)
    return Columns(0, spec.obs_size, *range(scalars, mask), mask, mask + spec.mask_size)


def pack_into(out: np.ndarray, rows: Transitions, which: slice | int, at: Columns) -> None:
    """Write rows `which` of host arrays into `out` (n, W) float32, or one row, given by its number, into (W,)."""
    columns = out.T  # (W,) or (W, n): one index for both forms
    columns[: at.next_obs] = rows.obs[which].T
    columns[at.next_obs : at.action] = rows.next_obs[which].T
    columns[at.action] = rows.action[which]
    columns[at.reward] = rows.reward[which]
    columns[at.terminated] = rows.terminated[which]
    columns[at.truncated] = rows.truncated[which]
    columns[at.discount] = rows.discount[which]
    if at.width > at.next_mask:
        columns[at.next_mask :] = rows.next_mask[which].T


def pack(rows: Transitions, spec: RowSpec) -> Tensor:
    """Rows of tensors as one (n, W) float32 tensor on their device: a pure function, fit to be compiled."""
    scalars = [getattr(rows, name).to(torch.float32)[:, None] for name in SCALARS]
    mask = [rows.next_mask.to(torch.float32)] if spec.masked else []
    return torch.cat([rows.obs, rows.next_obs, *scalars, *mask], dim=1)


def unpack(packed: Tensor, spec: RowSpec) -> Transitions:
    """The fields of packed rows (B, W): views, but for `action`, which becomes int64. Fit to be compiled."""
    d = spec.obs_size
    parts = torch.split_with_sizes(
        packed, [d, d, len(SCALARS), spec.mask_size], 1
    )  # fewer layers of Python than `Tensor.split`
    action, reward, terminated, truncated, discount = parts[2].unbind(1)
    mask = parts[3] if spec.masked else None
    return Transitions(parts[0], action.long(), reward, parts[1], terminated, truncated, discount, mask)
