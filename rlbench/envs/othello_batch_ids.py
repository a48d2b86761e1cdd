"""From sets of squares to packed ids: each legal square of each game by itself, with the discs that it turns over.

A set of 64 squares is looked at a row, one byte, at a time: a table says how many squares a row has and which its n-th is. So
there is never an array of 64 entries a game, most of them empty.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.envs.othello_batch import after, flips


@cache
def row_tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """Of each row: how many squares it has (256,); its n-th square, at 8 row + n (2048,)."""
    squares = [[1 << bit for bit in range(8) if row >> bit & 1] for row in range(256)]
    padded = [(*found, *[0] * (8 - len(found))) for found in squares]
    counts = torch.tensor([len(found) for found in squares], device=device)
    return counts, torch.tensor(padded, device=device).flatten()


def ids_of_rows(row: Tensor, entry: Tensor, nth_in: Tensor, mine: Tensor, theirs: Tensor, size: int) -> Tensor:
    """The id (A,) of each disc that may be placed. Arithmetic alone, which `torch.compile` takes whole, for any A.

    Args:
        row: (A,) int64, in which row of all boards it is, ascending.
        entry: (8 N,) int64, for each row, what to add to the place in `row` to come to an entry of `nth_in`.
        nth_in: the table of squares (2048,).
        mine, theirs: (N,) int64.
    """
    place = entry.index_select(0, row) + torch.arange(len(row), device=row.device)
    placed = nth_in.index_select(0, place) << ((row & 7) << 3)
    state = row >> 3
    mine, theirs = mine.index_select(0, state), theirs.index_select(0, state)
    placed = placed & ~(mine | theirs)
    return placed | flips(mine, theirs, placed, size)


def packed_ids(
    mine: Tensor, theirs: Tensor, squares: Tensor, size: int, ids_of_rows: Callable[..., Tensor] = ids_of_rows
) -> ActionSets:
    """The ids of the discs that the players of `mine` (N,) may place, in the order of their squares.

    Args:
        squares: (N,) int64, where discs may be placed. A square that is taken stands for a pass and gives id 0.
        ids_of_rows: the function of this name, or the same compiled.
    """
    squares_in, nth_in = row_tables(mine.device)
    rows = squares.contiguous().view(torch.uint8).to(torch.int64)  # (8 N,)
    counts = squares_in.index_select(0, rows)
    ends = counts.cumsum(0)
    offsets = torch.cat((ends.new_zeros(1), ends[7::8]))  # (N + 1,)
    total = int(offsets[-1])  # sync: the size of what is made
    row = torch.repeat_interleave(counts, output_size=total)  # (A,)
    entry = (rows << 3).add_(counts).sub_(ends)
    return ActionSets(ids_of_rows(row, entry, nth_in, mine, theirs, size), offsets)


def with_passes(mine: Tensor, moves: Tensor) -> Tensor:
    """The squares (N,) of games none of which is over, for `packed_ids`: any disc stands for a pass."""
    return torch.where(moves == 0, mine & -mine, moves)


def random_packed_step(
    mine: Tensor,
    theirs: Tensor,
    legal: ActionSets,
    bits: Tensor,
    size: int,
    after: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]] = after,
    ids_of_rows: Callable[..., Tensor] = ids_of_rows,
) -> tuple[Tensor, Tensor, ActionSets, Tensor]:
    """One ply of every game by a player who takes legal ids at random; games that end start anew.

    Args:
        mine, theirs: (N,) int64, seen by the player to move.
        legal: the ids of these N positions.
        bits: (N,) int64, 32 random bits each.
        after, ids_of_rows: the functions of these names, or the same compiled: `torch.compile(after, fullgraph=True)` and
            `torch.compile(ids_of_rows, dynamic=True, fullgraph=True)`.

    Returns:
        mine, theirs, legal, as they were given but a ply later, and which games have ended (N,) bool.
    """
    ids = legal.ids.index_select(0, legal.offsets[:-1] + ((bits * legal.counts) >> 32))
    mine, theirs, moves, ended = after(mine, theirs, ids, size)
    return mine, theirs, packed_ids(mine, theirs, with_passes(mine, moves), size, ids_of_rows), ended
