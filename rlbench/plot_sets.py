"""Pictures of ids and of sets of actions: which bits an id has, how a batch lies in memory, times over the spread of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rlbench.plot_style import COLOURS, DARK, MARKERS, new_figure, plain_log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDE = 8
EMPTY, LINE = "#FFFFFF", "#BBBBBB"
TELLABLE = (*COLOURS[:6], COLOURS[7])  # on white; yellow is not
PACKED_WIDTH = 32  # squares a line, where the packed layout is drawn


def boards(ids: Mapping[str, int]) -> Figure:
    """Each id as 8x8 squares, bit 8 row + column in row and column, filled where the bit is 1; the bit's number in each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.5 * len(ids), 2.9), layout="constrained")
    for axis, (title, id_) in zip(figure.subplots(1, len(ids), squeeze=False)[0], ids.items(), strict=True):
        for bit in range(SIDE * SIDE):
            row, column = divmod(bit, SIDE)
            on = bool(id_ >> bit & 1)
            _square(axis, column, row, COLOURS[0] if on else EMPTY)
            axis.text(column, row, str(bit), ha="center", va="center", fontsize=6.5, color="white" if on else "#777777")
        _bare(axis, SIDE, SIDE)
        axis.set_title(title, fontsize=9)
    return figure


def layouts(counts: Sequence[int], title: str = "") -> Figure:
    """One batch laid out three ways: padded, grouped by count, packed. A colour and a number a state; hatched: filled up."""
    from matplotlib.figure import Figure

    order = np.argsort(counts, kind="stable")
    width, total, groups = max(counts), sum(counts), len(set(counts))
    lines = -(-total // PACKED_WIDTH)
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=[len(counts) + groups, lines + 1.5])
    padded, grouped = (figure.add_subplot(grid[0, i]) for i in range(2))
    for row, (state, count) in enumerate(enumerate(counts)):
        _row_of(padded, row, state, count, width)
    padded.set_title(f"padded: {len(counts)} x {width} = {len(counts) * width} places, 1 call", fontsize=9)
    gap, last = 0.0, None
    for row, state in enumerate(order):
        gap += 0.7 if last not in (None, counts[state]) else 0.0
        last = counts[state]
        _row_of(grouped, row + gap, int(state), counts[state], counts[state])
    grouped.set_title(f"grouped: {total} places, {groups} calls", fontsize=9)
    for axis in (padded, grouped):
        _bare(axis, width, len(counts) + 0.7 * (groups - 1))
    packed = figure.add_subplot(grid[1, :])
    for place, state in enumerate(np.repeat(np.arange(len(counts)), counts)):
        row, column = divmod(place, PACKED_WIDTH)
        _square(packed, column, row, _colour(state))
        packed.text(column, row, str(state), ha="center", va="center", fontsize=7, color=_ink(state))
    _bare(packed, PACKED_WIDTH, lines)
    packed.set_title(f"packed: {total} places, 1 call, and where each state's begin", fontsize=9)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _row_of(axis: Axes, row: float, state: int, count: int, width: int) -> None:
    for column in range(width):
        real = column < count
        _square(axis, column, row, _colour(state) if real else EMPTY, hatch="" if real else "////")
        if real:
            axis.text(column, row, str(state), ha="center", va="center", fontsize=7, color=_ink(state))


def _colour(state: int) -> str:
    return COLOURS[state % (len(COLOURS) - 1)]


def _ink(state: int) -> str:
    return "black" if state % (len(COLOURS) - 1) in (1, 4, 6) else "white"


def _square(axis: Axes, column: float, row: float, colour: str, hatch: str = "") -> None:
    from matplotlib.patches import Rectangle

    axis.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, edgecolor=LINE, hatch=hatch, linewidth=0.6)
    )


def _bare(axis: Axes, columns: float, rows: float) -> None:
    axis.set_xlim(-0.6, columns - 0.4)
    axis.set_ylim(rows - 0.4, -0.6)
    axis.set_aspect("equal")
    axis.set_axis_off()


def over_spreads(rows: pd.DataFrame, title: str = "") -> Figure:
    """Ratio for each spread of counts, a line for each variant with its interval, the A/A band of each spread behind.

    `rows`: variant, baseline, spread, filled_up, ratio, ratio_low, ratio_high, aa_low, aa_high.
    """
    figure, (axis,) = new_figure(height=4.6)
    rows = rows[rows["variant"] != rows["baseline"]].dropna(subset=["ratio"])
    names = list(dict.fromkeys(rows["spread"]))
    for x, name in enumerate(names):
        part = rows[rows["spread"] == name]
        low, high = part["aa_low"].min(), part["aa_high"].max()
        axis.bar(
            x, high - low, bottom=low, width=0.9, color="#DDDDDD", label=None if x else "A/A band: no difference seen"
        )
    variants = list(dict.fromkeys(rows["variant"]))
    for i, variant in enumerate(variants):
        part = rows[rows["variant"] == variant]
        x = [names.index(name) + 0.7 * ((i + 0.5) / len(variants) - 0.5) for name in part["spread"]]
        error = [part["ratio"] - part["ratio_low"], part["ratio_high"] - part["ratio"]]
        style: dict[str, Any] = {
            "color": TELLABLE[i % len(TELLABLE)],
            "marker": MARKERS[i],
            "linestyle": "none",
            "capsize": 2,
        }
        axis.errorbar(x, part["ratio"], yerr=error, label=variant, **style)
    axis.axhline(1, color="black", linewidth=1)
    filled = rows.drop_duplicates("spread").set_index("spread")["filled_up"]
    axis.set_xticks(range(len(names)), [f"{name}\n({filled[name]:.0%} filled up)" for name in names], fontsize=8)
    axis.grid(False, axis="x")
    plain_log(axis, "y", min([0.8, *rows["ratio_low"]]) / 1.1, max([1.25, *rows["ratio_high"]]) * 1.1)
    axis.set_ylabel("times as fast as the baseline")
    axis.set_xlabel("legal actions of a state, and the share of a padded matrix that is none", color=DARK)
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure
