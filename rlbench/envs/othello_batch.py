"""Sets of squares of a board, one a game and each a number of 64 bits held in int64: where discs may go and what they turn over.

Square (row, column) is bit 8 row + column whatever the size of the board. A line of discs is followed by shifting all of them at
once, in steps that double ("parallel prefix", Hillis and Steele, 1986): 1, 2, 4, 6 squares. What may be followed is masked to the
squares that have a neighbour on both sides, so that no shift has to be masked again: a line never runs over an edge of the board
into the next row, and the sign that a shift to the right drags along is never followed.

Everything here is arithmetic on tensors, without a look at their values: it runs on any device, and `torch.compile` takes it
whole.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

SIZES = (4, 6, 8)
STACKED = (
    4096  # up to here the four lines are worked on in one call each; above, an extra row only falls out of the cache
)
LINES = (1, 8, 7, 9)  # places from a square to the next: along a row, a column, and both diagonals
ONES = 0x0101010101010101  # a one in each byte
HALVES = 0x4040404040404040


def signed(bits: int) -> int:
    """64 bits as the int64 that holds them."""
    return bits - (1 << 64) if bits >> 63 else bits


@cache
def squares_of(size: int) -> int:
    """All squares of a board."""
    return signed(sum(1 << (8 * r + c) for r in range(size) for c in range(size)))


@cache
def inner_of(size: int) -> tuple[int, ...]:
    """For each line, the squares that have a neighbour on both sides."""
    inside, every = range(1, size - 1), range(size)
    rows_and_columns = ((every, inside), (inside, every), (inside, inside), (inside, inside))
    return tuple(signed(sum(1 << (8 * r + c) for r in rows for c in cols)) for rows, cols in rows_and_columns)


@cache
def stacked_lines(size: int, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """All lines as one: places (4, 1) and inner squares (4, 1)."""
    return [tuple(torch.tensor(values, device=device)[:, None] for values in (LINES, inner_of(size)))]


def lines_of(x: Tensor, size: int) -> list[tuple[int, int]] | list[tuple[Tensor, Tensor]]:
    """Pairs (places, inner squares) to work on in turn: all in one for few games, where a call costs more than its work."""
    if torch.compiler.is_compiling() or len(x) > STACKED:
        return list(zip(LINES, inner_of(size), strict=True))
    return stacked_lines(size, x.device)


def runs(discs: Tensor, followed: Tensor, places: int | Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The discs of `followed` that stand in an unbroken line from one of `discs`, upwards and downwards."""
    up, down = (discs << places).bitwise_and_(followed), (discs >> places).bitwise_and_(followed)
    up |= (up << places).bitwise_and_(followed)
    down |= (down >> places).bitwise_and_(followed)
    if size > 4:
        two = (followed << places).bitwise_and_(followed)  # with the one before
        two_down = two >> places
        for _ in range(size // 2 - 2):
            up |= (up << 2 * places).bitwise_and_(two)
            down |= (down >> 2 * places).bitwise_and_(two_down)
    return up, down


def either(x: Tensor) -> Tensor:
    """What is in any of the lines: (4, N) to (N,)."""
    if x.ndim == 1:
        return x
    a, b, c, d = x.unbind()
    return (a | b).bitwise_or_(c).bitwise_or_(d)


def legal_squares(mine: Tensor, theirs: Tensor, size: int) -> Tensor:
    """The squares (N,) on which the player of `mine` (N,) may place a disc."""
    found = None
    for places, inner in lines_of(mine, size):
        up, down = runs(mine, theirs & inner, places, size)
        ends = either((up << places).bitwise_or_(down >> places))
        found = ends if found is None else found.bitwise_or_(ends)
    return found.bitwise_and_(~(mine | theirs)).bitwise_and_(squares_of(size))


def flips(mine: Tensor, theirs: Tensor, placed: Tensor, size: int) -> Tensor:
    """The discs (N,) that a disc on square `placed` (N,) turns over; none where `placed` is empty."""
    found = None
    for places, inner in lines_of(mine, size):
        up, down = runs(placed, theirs & inner, places, size)
        # A run counts where a disc of mine follows its last: all bits where so, else none, from the sign.
        up &= (mine >> places).bitwise_and_(up).neg_().bitwise_right_shift_(63)
        down &= (mine << places).bitwise_and_(down).neg_().bitwise_right_shift_(63)
        turned = up.bitwise_or_(down)
        turned = turned.sum(0) if turned.ndim > 1 else turned  # no square is in two lines
        found = turned if found is None else found.bitwise_or_(turned)
    return found


def in_bytes(squares: Tensor) -> Tensor:
    """How many squares each byte (each row) has, in that byte: sums of pairs, of fours (Warren, Hacker's Delight, 5-1)."""
    x = (squares & 0x5555555555555555) + ((squares >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    return (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F


def count(squares: Tensor) -> Tensor:
    """How many squares each set has, (N,) int64."""
    return (in_bytes(squares) * ONES) >> 56


def lanes_up_to(k: Tensor, sums: Tensor) -> Tensor:
    """How many bytes of `sums` are at most k, both below 64."""
    reached = ((k * ONES + HALVES) - sums) & HALVES
    return ((reached >> 6) * ONES) >> 56


def nth_square(squares: Tensor, k: Tensor) -> Tensor:
    """The k-th square of each set from below (N,), k from 0 to below its count; 0 for an empty set.

    Finds the byte, then the bit in it, each by comparing all eight running counts at once (Vigna, Broadword implementation of
    rank/select queries, 2008).
    """
    sums = in_bytes(squares) * ONES  # running, the byte itself included
    place = (lanes_up_to(k, sums) << 3) & 56
    rank = k - (((sums << 8) >> place) & 0xFF)
    row = (squares >> place) & 0xFF
    spread = (row * ONES) & signed(0x8040201008040201)  # bit j, alone in byte j
    sums = (((spread + 0x7F7F7F7F7F7F7F7F) >> 7) & ONES) * ONES
    return (torch.ones_like(squares) << (place + lanes_up_to(rank, sums))) & squares


def start_squares(size: int) -> tuple[int, int]:
    """(mine, theirs) at the start. Black, who moves first, has the square right of and above the middle, and its opposite."""
    low, high = size // 2 - 1, size // 2
    black, white = ((low, high), (high, low)), ((low, low), (high, high))
    return tuple(signed(sum(1 << (8 * r + c) for r, c in squares)) for squares in (black, white))


def random_step(
    mine: Tensor, theirs: Tensor, moves: Tensor, bits: Tensor, size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One ply of every game by a player who places discs at random; games that end start anew.

    Args:
        mine, theirs: (N,) int64, seen by the player to move.
        moves: (N,) int64, `legal_squares` of these; a game without any passes.
        bits: (N,) int64, 32 random bits each.

    Returns:
        mine, theirs, moves, as they were given but a ply later, and which games have ended (N,) bool.
    """
    placed = nth_square(moves, (bits * count(moves)) >> 32)
    changed = placed | flips(mine, theirs, placed, size)
    mine, theirs = theirs & ~changed, mine | changed
    moves = legal_squares(mine, theirs, size)
    ended = (moves | legal_squares(theirs, mine, size)) == 0
    new_mine, new_theirs = start_squares(size)
    mine, theirs = mine.where(~ended, new_mine), theirs.where(~ended, new_theirs)
    return mine, theirs, moves.where(~ended, start_moves(size)), ended


@cache
def start_moves(size: int) -> int:
    """The squares on which black may place the first disc: beyond a disc of the other's, two from one of black's own."""
    low, high = size // 2 - 1, size // 2
    return signed(
        sum(1 << (8 * r + c) for r, c in ((low, low - 1), (low - 1, low), (high, high + 1), (high + 1, high)))
    )
