"""Pictures of Othello: a position with its legal actions and their ids, and a game as a row of boards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rlbench.experiments.one_game import Move
from rlbench.plot_style import COLOURS, DARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTERS = "abcdefgh"
COLUMNS = 5
FELT, CHANGED, SQUARE = "#E8F1EC", "#F3D9A4", "#B9C9C0"
PASS = "pass"


def planes(move: Move) -> tuple[np.ndarray, np.ndarray, int]:
    """Squares (size, size) of the player to move and of the other, and the size of the board."""
    size = math.isqrt(len(move.obs) // 2)
    mine, theirs = move.obs.reshape(2, size, size).numpy() > 0.5
    return mine, theirs, size


def changed(action: int, size: int) -> np.ndarray:
    """The squares (size, size) that an id changes: bit 8 row + column."""
    return np.array([[action >> (8 * row + column) & 1 for column in range(size)] for row in range(size)], bool)


def placed(move: Move, action: int) -> str:
    """Where an action places its disc, such as "d3": the column's letter, the row from the top; or "pass"."""
    mine, theirs, size = planes(move)
    where = np.argwhere(changed(action, size) & ~mine & ~theirs)
    return f"{LETTERS[where[0][1]]}{where[0][0] + 1}" if len(where) else PASS


def actions_of(move: Move) -> pd.DataFrame:
    """A row a legal action: square, turns (discs turned), id (a whole number), id_hex (its bits, four a digit)."""
    made = [
        {"square": placed(move, each), "turns": max(0, each.bit_count() - 1), "id": str(each), "id_hex": f"{each:#x}"}
        for each in move.legal
    ]
    return pd.DataFrame(made)


def black_moves(move: Move) -> bool:
    """Black has the plies 0, 2, 4 …: a pass is a ply."""
    return move.ply % 2 == 0


def draw_board(axis: Axes, move: Move, action: int | None = None, marked: Sequence[int] = ()) -> None:
    """Discs as they lie, the squares that `action` changes tinted, and a ring where each of `marked` would place a disc."""
    mine, theirs, size = planes(move)
    tinted = changed(action, size) if action is not None else np.zeros((size, size), bool)
    black, white = (mine, theirs) if black_moves(move) else (theirs, mine)
    for row, column in np.ndindex(size, size):
        axis.add_patch(_square(column, row, CHANGED if tinted[row, column] else FELT))
        if black[row, column] or white[row, column]:
            axis.add_patch(_disc(column, row, "black" if black[row, column] else "white"))
    for each in marked:
        where = np.argwhere(changed(each, size) & ~mine & ~theirs)
        for row, column in where:
            axis.add_patch(_disc(column, row, "none", edge=COLOURS[0], width=2, line="--"))
    axis.set_xlim(-0.55, size - 0.45)
    axis.set_ylim(size - 0.45, -0.55)
    axis.set_aspect("equal")
    axis.set_xticks(range(size), LETTERS[:size])
    axis.set_yticks(range(size), [str(row + 1) for row in range(size)])
    axis.tick_params(length=0, labelsize=7, colors=DARK)
    axis.spines[:].set_visible(False)
    axis.grid(False)


def _square(column: int, row: int, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, edgecolor=SQUARE, linewidth=0.8)


def _disc(column: int, row: int, colour: str, edge: str = "black", width: float = 1.0, line: str = "-") -> Any:
    from matplotlib.patches import Circle

    return Circle((column, row), 0.38, facecolor=colour, edgecolor=edge, linewidth=width, linestyle=line)


def legal_actions(move: Move, title: str = "", most: int = 9) -> Figure:
    """The position with a ring on every legal square; then, for at most so many actions, the squares that each changes."""
    figure, axes = _boards(1 + min(most, len(move.legal)))
    draw_board(axes[0], move, marked=move.legal)
    axes[0].set_title(f"{'black' if black_moves(move) else 'white'} to move:\n{len(move.legal)} legal", fontsize=9)
    for axis, action in zip(axes[1:], move.legal, strict=False):
        draw_board(axis, move, action)
        axis.set_title(f"{placed(move, action)}: id\n{action:#x}", fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def game(moves: Sequence[Move], title: str = "") -> Figure:
    """A board for each position, the squares tinted that the move changes; at the end the discs are counted."""
    figure, axes = _boards(len(moves))
    for axis, move in zip(axes, moves, strict=True):
        draw_board(axis, move, move.chosen)
        axis.set_title(_said(move), fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _said(move: Move) -> str:
    side = "black" if black_moves(move) else "white"
    if move.chosen is not None:
        return f"ply {move.ply + 1}: {side}, {placed(move, move.chosen)}\n{move.by}"
    mine, theirs, _ = planes(move)
    black, white = (mine, theirs) if black_moves(move) else (theirs, mine)
    return f"the end:\nblack {black.sum()}, white {white.sum()}"


def _boards(count: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    columns = min(count, COLUMNS)
    lines = -(-count // columns)
    figure = Figure(figsize=(1.75 * columns, 0.35 + 2.1 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.remove()
    return figure, list(axes[:count])
