"""Sets of squares of a board, one a game and each a number of 64 bits held in int64: where discs may go and what they turn over.

Square (row, column) is bit 8 row + column whatever the size of the board. A line of discs is followed by shifting all of them at
once, in steps that double ("parallel prefix", Hillis and Steele, 1986): 1, 2, 4, 6 squares. What may be followed is masked to the
squares that have a neighbour on both sides, so that no shift has to be masked again: a line never runs over an edge of the board
into the next row, and the sign that a shift to the right drags along is never followed.

Everything here is arithmetic on tensors, without a look at their values: it runs on any device, and `torch.compile` takes it
whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, wraps
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

SIZES = (4, 6, 8)
BLOCK = 4096  # boards that are worked on at a time on a CPU, so that what lies between two calls stays in its cache
LINES = (1, 8, 7, 9)  # places from a square to the next: along a row, a column, and both diagonals
ONES = 0x0101010101010101  # a one in each byte
HALVES = 0x4040404040404040


def signed(bits: int) -> int:
    """64 bits as the int64 that holds them."""
    return bits - (1 << 64) if bits >> 63 else bits


def set_of(rows: Iterable[int], columns: Iterable[int]) -> int:
    return signed(sum(1 << (8 * r + c) for r, c in product(rows, columns)))


def inner_of(size: int) -> tuple[int, ...]:
    """For each line, the squares that have a neighbour on both sides."""
    inside, every = range(1, size - 1), range(size)
    return tuple(set_of(*sides) for sides in ((every, inside), (inside, every), (inside, inside), (inside, inside)))


SQUARES = {size: set_of(range(size), range(size)) for size in SIZES}  # all of a board
INNER = {size: inner_of(size) for size in SIZES}


@cache
def stacked_lines(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """All lines as one: places (4, 1) and inner squares (4, 1)."""
    places, inner = (torch.tensor(values, device=device)[:, None] for values in (LINES, INNER[size]))
    return places, inner


def lines_of(x: Tensor, size: int) -> list[tuple[int, int]] | list[tuple[Tensor, Tensor]]:
    """Pairs (places, inner squares) to work on in turn: by calls all at once, which saves calls; compiled one by one."""
    return list(zip(LINES, INNER[size], strict=True)) if is_compiling() else [stacked_lines(size, x.device)]


def in_blocks(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function of tensors (N,) and a size, a block at a time where that is faster."""

    @wraps(function)
    def whole(*args: Any) -> Tensor:
        *tensors, size = args
        if is_compiling() or len(tensors[0]) <= BLOCK or tensors[0].device.type != "cpu":
            return function(*tensors, size)
        parts = zip(*(tensor.split(BLOCK) for tensor in tensors), strict=True)
        return torch.cat([function(*part, size) for part in parts])

    return whole


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


@in_blocks
def legal_squares(mine: Tensor, theirs: Tensor, size: int) -> Tensor:
    """The squares (N,) on which the player of `mine` (N,) may place a disc."""
    found = None
    for places, inner in lines_of(mine, size):
        up, down = runs(mine, theirs & inner, places, size)
        ends = either((up << places).bitwise_or_(down >> places))
        found = ends if found is None else found.bitwise_or_(ends)
    return found.bitwise_and_(~(mine | theirs)).bitwise_and_(SQUARES[size])


@in_blocks
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


def start_of(size: int) -> tuple[int, int, int]:
    """(mine, theirs, moves) at the start. Black, who moves first, has the square right of and above the middle, and its opposite;
    a first disc goes beyond a white one, seen from a black one.
    """
    a, b, c, d = range(size // 2 - 2, size // 2 + 2)
    black, white, moves = ((b, c), (c, b)), ((b, b), (c, c)), ((b, a), (a, b), (c, d), (d, c))
    return tuple(sum(set_of([row], [column]) for row, column in squares) for squares in (black, white, moves))


START = {size: start_of(size) for size in SIZES}


def after(mine: Tensor, theirs: Tensor, ids: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Take action ids (N,), a pass where 0; games that end start anew.

    Returns:
        mine, theirs: (N,), seen by the player to move next.
        moves: (N,), `legal_squares` of these; a game without any passes.
        ended: (N,) bool.
    """
    mine, theirs = theirs & ~ids, mine | ids
    moves = legal_squares(mine, theirs, size)
    ended = (moves | legal_squares(theirs, mine, size)) == 0
    begun = START[size]
    mine, theirs, moves = (x.where(~ended, first) for x, first in zip((mine, theirs, moves), begun, strict=True))
    return mine, theirs, moves, ended


def random_step(
    mine: Tensor, theirs: Tensor, moves: Tensor, bits: Tensor, size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One ply of every game by a player who places discs at random, moves as sets of squares.

    Args:
        mine, theirs, moves: (N,) int64, as `after` gives them, or as they are in START.
        bits: (N,) int64, 32 random bits each.

    Returns:
        As `after`.
    """
    placed = nth_square(moves, (bits * count(moves)) >> 32)
    return after(mine, theirs, placed | flips(mine, theirs, placed, size), size)
