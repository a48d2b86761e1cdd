"""From sets of squares to packed ids: each legal square of each game by itself, with the discs that it turns over.

A set of 64 squares is looked at a row, one byte, at a time: a table says how many squares a row has and which its n-th is. So
there is never an array of 64 entries a game, most of them empty.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.envs.othello_batch import flips


@cache
def row_tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """Of each row: how many squares it has (256,); its n-th square, at 8 row + n (2048,)."""
    squares = [[1 << bit for bit in range(8) if row >> bit & 1] for row in range(256)]
    padded = [(*found, *[0] * (8 - len(found))) for found in squares]
    counts = torch.tensor([len(found) for found in squares], device=device)
    return counts, torch.tensor(padded, device=device).flatten()


def packed_ids(mine: Tensor, theirs: Tensor, squares: Tensor, size: int) -> ActionSets:
    """The ids of the discs that the players of `mine` (N,) may place, in the order of their squares.

    Args:
        squares: (N,) int64, where discs may be placed. A square that is taken stands for a pass and gives id 0.
    """
    squares_in, nth_in = row_tables(mine.device)
    rows = squares.contiguous().view(torch.uint8).to(torch.int64)  # (8 N,)
    counts = squares_in.index_select(0, rows)
    ends = counts.cumsum(0)
    offsets = torch.cat((ends.new_zeros(1), ends[7::8]))  # (N + 1,)
    total = int(offsets[-1])  # sync: the size of what is made
    row = torch.repeat_interleave(counts, output_size=total)  # (A,)
    entry = (rows << 3).add_(counts).sub_(ends).index_select(0, row)
    entry += torch.arange(total, device=mine.device)
    placed = nth_in.index_select(0, entry).bitwise_left_shift_((row & 7).bitwise_left_shift_(3))
    state = row.bitwise_right_shift_(3)
    mine, theirs = mine.index_select(0, state), theirs.index_select(0, state)
    placed &= ~(mine | theirs)
    return ActionSets(flips(mine, theirs, placed, size).bitwise_or_(placed), offsets)
