"""Reversi (Othello) on 4x4, 6x6 and 8x8 boards, any number of games at once, as integer arithmetic on tensors.

A board is two sets of squares, those of the player to move and those of the other, each a number of 64 bits held in int64.
Square (row, column) has bit 8 row + column whatever the size, so that one set of shifts serves all; what lies beyond a smaller
board is masked. An action's id is the set of squares that change to the mover's colour, the disc placed and those flipped; a
pass is 0, and legal only where nothing else is; a finished game has no action. Needs torch alone, reads nothing on the host but
the number of actions where they are packed, and has no Python loop over games.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rlbench.actions import ActionSets

SIZES = (4, 6, 8)
FULL = -1  # all 64 bits


class Boards(NamedTuple):
    """N positions, seen by the player to move."""

    mine: Tensor  # (N,) int64
    theirs: Tensor  # (N,) int64
    size: int


def signed(bits: int) -> int:
    """64 bits as the int64 that holds them."""
    return bits - (1 << 64) if bits >> 63 else bits


def column(c: int) -> int:
    return sum(1 << (8 * r + c) for r in range(8))


def squares_of(size: int) -> int:
    """All squares of a board."""
    return signed(sum(1 << (8 * r + c) for r in range(size) for c in range(size)))


ALL = (1 << 64) - 1
# (places to the left, or to the right where negative; which squares a disc can arrive on): an arithmetic shift to the right
# drags the sign along, and a shift along a row leaves one end of the board for the other end of the next.
DIRECTIONS = (
    (1, signed(ALL & ~column(0))),
    (7, signed(ALL & ~column(7) & ~0x7F)),
    (8, signed(ALL & ~0xFF)),
    (9, signed(ALL & ~column(0) & ~0x1FF)),
    (-1, signed(ALL & ~column(7))),
    (-7, signed(ALL & ~column(0) & (ALL >> 7))),
    (-8, signed(ALL >> 8)),
    (-9, signed(ALL & ~column(7) & (ALL >> 9))),
)


def shifted(x: Tensor, places: int, arrive: int) -> Tensor:
    """Every disc one step on in a direction; those that leave the board are gone."""
    return (x << places if places > 0 else x >> -places) & arrive


def start(num_games: int = 1, size: int = 8, device: str | torch.device = "cpu") -> Boards:
    """The four discs in the middle; the player to move is black, who has the square right of and above the middle.

    Raises:
        ValueError: for a size that is none of 4, 6 and 8.
    """
    if size not in SIZES:
        raise ValueError(f"size={size!r} is refused; accepted: {', '.join(map(str, SIZES))}.")
    low, high = size // 2 - 1, size // 2

    def boards(*squares: tuple[int, int]) -> Tensor:
        return torch.full(
            (num_games,), signed(sum(1 << (8 * r + c) for r, c in squares)), dtype=torch.int64, device=device
        )

    return Boards(boards((low, high), (high, low)), boards((low, low), (high, high)), size)


def legal_squares(mine: Tensor, theirs: Tensor, size: int) -> Tensor:
    """The squares (N,) on which the player of `mine` may place a disc."""
    empty, found = squares_of(size) & ~(mine | theirs), torch.zeros_like(mine)
    for places, arrive in DIRECTIONS:
        run = shifted(mine, places, arrive) & theirs
        for _ in range(size - 3):
            run = run | (shifted(run, places, arrive) & theirs)
        found = found | (shifted(run, places, arrive) & empty)
    return found


def flips(mine: Tensor, theirs: Tensor, placed: Tensor, size: int) -> Tensor:
    """The discs (N,) that a disc on square `placed` (N,) turns over."""
    found = torch.zeros_like(mine)
    for places, arrive in DIRECTIONS:
        run = shifted(placed, places, arrive) & theirs
        for _ in range(size - 3):
            run = run | (shifted(run, places, arrive) & theirs)
        closed = (shifted(run, places, arrive) & mine) != 0
        found = found | torch.where(closed, run, 0)
    return found


def legal_actions(boards: Boards) -> ActionSets:
    """The ids of every position's legal actions, in the order of their squares."""
    mine, theirs, size = boards
    moves = legal_squares(mine, theirs, size)
    passes = (moves == 0) & (legal_squares(theirs, mine, size) != 0)
    bits = torch.arange(64, device=mine.device)
    able = ((moves[:, None] >> bits) & 1).bool()  # (N, 64)
    able = torch.cat((able, passes[:, None]), 1)  # (N, 65): the last is a pass
    state, square = able.nonzero(as_tuple=True)  # sync: how many there are
    placed = torch.where(square == 64, 0, torch.ones_like(square) << square.clamp(max=63))
    ids = placed | flips(mine[state], theirs[state], placed, size)
    offsets = torch.cat((state.new_zeros(1), able.sum(1).cumsum(0)))
    return ActionSets(ids, offsets)


def play(boards: Boards, ids: Tensor) -> Boards:
    """Take action ids (N,) int64, one a game; the mover changes. A finished game stays as it is under id 0, but for that."""
    mine, theirs = boards.mine | ids, boards.theirs & ~ids
    return Boards(theirs, mine, boards.size)


def finished(boards: Boards) -> Tensor:
    """(N,) bool: neither player has a square to place a disc on."""
    mine, theirs, size = boards
    return (legal_squares(mine, theirs, size) | legal_squares(theirs, mine, size)) == 0


def count(squares: Tensor) -> Tensor:
    """How many squares each set has, (N,) int64: sums of pairs, of fours, of bytes (Warren, Hacker's Delight, 5-1)."""
    x = squares - ((squares >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 0xFF


def lead(boards: Boards) -> Tensor:
    """Discs of the player to move less those of the other, (N,) int64."""
    return count(boards.mine) - count(boards.theirs)


def features(boards: Boards) -> Tensor:
    """What a network sees, (N, 2 size²) float32: a plane of the mover's discs, then one of the other's."""
    size = boards.size
    rows = torch.arange(size, device=boards.mine.device)
    bits = (8 * rows[:, None] + rows).reshape(-1)
    both = torch.stack((boards.mine, boards.theirs), 1)[..., None]  # (N, 2, 1)
    return ((both >> bits) & 1).flatten(1).to(torch.float32)
