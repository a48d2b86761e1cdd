"""Pictures of a panel: the ladder of ratios against plain, and the panel's state for a report without widgets."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart without red and green.
COLOURS = {"faster": "#0072B2", "slower": "#D55E00"}
UNDECIDED, BAND, INK, FAINT = "#8C8C8C", "#E6E6E6", "#222222", "#6E6E6E"
WIDTH_IN, ROW_IN, HEAD_IN, FOOT_IN = 9.6, 0.5, 0.36, 0.8
LINE_IN, MORE_IN = 0.27, 0.17  # a slot's line, and what each further line of its remark adds
LEFT, BARS = 0.2, 0.42  # where a ladder's bars begin and how wide they may be, as shares of the width
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100)
LONGEST_LABEL, REMARK_WIDTH = 24, 95


def draw_ladder(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Bars from 1 to each ratio on a log axis, with the 95 % interval and the A/A band behind it.

    Args:
        rows: as `Bench.table` has them: choices, ratio, ratio_low, ratio_high, aa_low, aa_high, verdict, mean_return,
            plain_return, rounds, note. The first is drawn on top.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, _ladder_inches(rows)), dpi=100)
    ladder_on(_axes(figure, LEFT, BARS, FOOT_IN, ROW_IN * len(rows)), rows)
    return figure


def _ladder_inches(rows: Sequence[Mapping[str, Any]]) -> float:
    return FOOT_IN + ROW_IN * len(rows) + HEAD_IN


def _axes(figure: Figure, left: float, width: float, bottom_in: float, height_in: float) -> Axes:
    """Axes with horizontal places as shares of the width, vertical ones in inches."""
    inches = figure.get_figheight()
    return figure.add_axes((left, bottom_in / inches, width, height_in / inches))


def ladder_on(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw the ladder on given axes."""
    for y, row in enumerate(rows):
        colour = COLOURS.get(row["verdict"], UNDECIDED)
        axes.barh(y, row["aa_high"] - row["aa_low"], left=row["aa_low"], height=0.86, color=BAND, zorder=1)
        axes.barh(y, row["ratio"] - 1, left=1, height=0.42, color=colour, zorder=2)
        axes.plot([row["ratio_low"], row["ratio_high"]], [y, y], color=INK, lw=1.4, marker="|", ms=9, zorder=3)
        axes.annotate(_remark(row), (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize=9, color=INK)
    axes.axvline(1, color=INK, lw=1, zorder=4)
    axes.set_yticks(range(len(rows)), [_short(row["choices"]) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    _ratio_axis(axes, rows)
    axes.set_title("Whole trainings: time under plain / time under the choices", loc="left", fontsize=10, color=INK)
    axes.set_xlabel(
        "← slower     ratio, log scale     faster →\nblack: 95 % interval; grey: A/A band, what plain against itself shows",
        fontsize=8.5,
        color=FAINT,
    )


def _ratio_axis(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """A log axis that holds all intervals, at least from 0.8 to 1.25, with few and plain ticks."""
    from matplotlib.ticker import FixedLocator, NullLocator

    ends = [row[key] for row in rows for key in ("ratio_low", "ratio_high", "aa_low", "aa_high")]
    low, high = min([0.8, *ends]) / 1.05, max([1.25, *ends]) * 1.05
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks = _apart([tick for tick in TICKS if low <= tick <= high], math.log(high / low) / 9)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}x" for tick in ticks])
    axes.tick_params(labelsize=9, length=3, colors=INK)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _apart(ticks: Sequence[float], distance: float) -> list[float]:
    """The tick 1 and those on either side of it that leave `distance` (of logarithms) between neighbours."""
    kept = [1.0]
    for side in ([t for t in ticks if t > 1], [t for t in reversed(ticks) if t < 1]):
        last = 1.0
        for tick in side:
            if abs(math.log(tick / last)) >= distance:
                kept.append(tick)
                last = tick
    return sorted(kept)


def _remark(row: Mapping[str, Any]) -> str:
    numbers = f"{row['ratio']:.2f}x  [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]  {row['verdict']}"
    rounds = f"{row['rounds']} round{'' if row['rounds'] == 1 else 's'}" + (f" ({row['note']})" if row["note"] else "")
    return f"{numbers}\nreturn {_number(row['mean_return'])}, plain {_number(row['plain_return'])}; {rounds}"


def _number(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.4g}"


def _short(label: str) -> str:
    """A label in lines that leave room for the bars."""
    lines = [""]
    for word in label.split(", "):
        if lines[-1] and len(lines[-1]) + len(word) > LONGEST_LABEL:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + word
    return "\n".join(lines)


def draw_state(
    title: str, slots: Sequence[tuple[str, str, bool, str]], note: str, ladder: Sequence[Mapping[str, Any]]
) -> Figure:
    """A panel as a still picture.

    Args:
        slots: (slot, variant selected, True where it is not plain's, remark), a row each.
        note: a sentence below them.
        ladder: rows of `draw_ladder`; none draws no ladder.
    """
    from matplotlib.figure import Figure

    lines = [(slot, variant, changed, textwrap.fill(remark, REMARK_WIDTH)) for slot, variant, changed, remark in slots]
    state_in = HEAD_IN + sum(_line_inches(line[-1]) for line in lines) + LINE_IN
    ladder_in = _ladder_inches(ladder) + 0.15 if ladder else 0.0
    figure = Figure(figsize=(WIDTH_IN, state_in + ladder_in + 0.05), dpi=100)
    _state_on(_axes(figure, 0.015, 0.97, ladder_in, state_in - HEAD_IN), title, lines, note)
    if ladder:
        ladder_on(_axes(figure, LEFT, BARS, FOOT_IN, ROW_IN * len(ladder)), ladder)
    return figure


def _line_inches(remark: str) -> float:
    return LINE_IN + MORE_IN * remark.count("\n")


def _state_on(axes: Axes, title: str, lines: Sequence[tuple[str, str, bool, str]], note: str) -> None:
    """Draw the lines from the top down; the vertical axis is in inches."""
    heights = [*(_line_inches(line[-1]) for line in lines), LINE_IN]
    middles = [sum(heights[:i]) + height / 2 for i, height in enumerate(heights)]
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(sum(heights), 0)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    for y, (slot, variant, changed, remark) in zip(middles, lines, strict=False):
        axes.text(0, y, slot, va="center", fontsize=10, color=FAINT)
        weight, colour = ("bold", COLOURS["faster"]) if changed else ("normal", INK)
        axes.text(0.14, y, variant, va="center", fontsize=10, color=colour, fontweight=weight)
        axes.text(0.31, y, remark, va="center", fontsize=8.5, color=FAINT)
    axes.text(0, middles[-1], note, va="center", fontsize=9, color=INK)


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
