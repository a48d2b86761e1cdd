"""A picture of time per unit over size, a panel for each curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from rlbench.plot_style import COLOURS, DARK, MARKERS
from rlbench.sentences import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
TICKS = 5  # most, across a panel
LEAST_SPAN = 2.2  # of times in a panel, so that noise is not drawn large
FINE = (1, 1.5, 2, 3, 4, 5, 7)
STYLES = {  # by variant, the same in every panel; baselines are black
    "batched": 0,
    "native": 2,
    "compiled": 1,
    "chunked": 3,
    "cuda_graph": 5,
    "ring_torch": 4,
}


def small_multiples(rows: pd.DataFrame, title: str = "") -> Figure:
    """Time per unit against size on logarithmic axes, a panel a curve and a line a variant, bars from quartile to quartile.

    A mark is filled where the variant pays, and hollow where it does not. Dotted: a baseline taken to cost as much as at the
    largest size at which it was timed.

    `rows`: as `experiments.scaling_point.trace` gives them.
    """
    from matplotlib.figure import Figure

    curves = list(rows.groupby("curve", sort=False))
    columns = min(COLUMNS, len(curves))
    lines = -(-len(curves) // columns)
    figure = Figure(figsize=(3.4 * columns, 0.9 + 2.9 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis, (name, part) in zip(axes, curves, strict=False):
        _panel(axis, str(name), part)
    for axis in axes[len(curves) :]:
        axis.remove()
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    found = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(
        found.values(), found.keys(), loc="outside lower center", ncols=2 * columns, frameon=False, fontsize=9
    )
    return figure


def _panel(axis: Axes, name: str, part: pd.DataFrame) -> None:
    part = part.sort_values("size", kind="stable")
    for variant, line in part.groupby("variant", sort=False):
        line = line.dropna(subset=["unit_ns"])
        if len(line):
            _line(axis, str(variant), line)
    axis.set_xscale("log")
    axis.set_yscale("log")
    sizes = sorted(set(part["size"]))
    shown = sizes[:: -(-len(sizes) // TICKS)]
    axis.set_xticks(shown, [_short(size) for size in shown])
    axis.set_xticks([], minor=True)
    _times(axis)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(True, color="#E5E5E5", linewidth=0.7)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8)
    axis.set_xlabel(part["size_means"].iloc[0], fontsize=9)
    axis.set_title(f"{name.replace('_', ' ')}: time per {part['unit'].iloc[0]}", loc="left", fontsize=9.5)


def _line(axis: Axes, variant: str, line: pd.DataFrame) -> None:
    plain = (line["variant"] == line["baseline"]).all()
    number = STYLES.get(variant, len(COLOURS) - 2)
    colour, marker = (DARK, "s") if plain else (COLOURS[number], MARKERS[number])
    held = line["extrapolated"].eq(True) if "extrapolated" in line else pd.Series(False, line.index)
    label = "the plain variant" if plain else variant
    timed = line[~held]
    axis.plot(timed["size"], timed["unit_ns"], color=colour, linewidth=1.3, zorder=2)
    if held.any():
        axis.plot(line["size"], line["unit_ns"], color=colour, linewidth=1.3, linestyle=":", zorder=1)
    bars = [timed["unit_ns"] - timed["unit_ns_low"], timed["unit_ns_high"] - timed["unit_ns"]]
    style = {"linestyle": "none", "color": colour, "capsize": 2, "elinewidth": 1}
    axis.errorbar(timed["size"], timed["unit_ns"], yerr=bars, marker=marker, markersize=5, label=label, **style)
    hollow = timed[timed["verdict"] != "faster"]
    if len(hollow) and not plain:
        axis.plot(
            hollow["size"], hollow["unit_ns"], marker, color=colour, markersize=5, markerfacecolor="white", zorder=5
        )


def _times(axis: Axes) -> None:
    """Ticks at tenfolds of a nanosecond, and between them where there are few; a panel spans a factor of two at least."""
    low, high = axis.get_ylim()
    if high / low < LEAST_SPAN:
        middle = (low * high) ** 0.5
        low, high = axis.set_ylim(middle / LEAST_SPAN**0.5, middle * LEAST_SPAN**0.5)
    steps = (1,) if high / low > 300 else (1, 3) if high / low > 30 else (1, 2, 5) if high / low > 6 else FINE
    ticks = [s * 10.0**k for k in range(-3, 13) for s in steps if low <= s * 10.0**k <= high]
    axis.set_yticks(ticks, [seconds(tick * 1e-9) for tick in ticks])
    axis.set_yticks([], minor=True)


def _short(size: int) -> str:
    """1k and 10M for round thousands and millions, all digits for anything else."""
    for unit, factor in (("M", 1_000_000), ("k", 1_000)):
        if size >= factor and size % factor == 0:
            return f"{size // factor:,}{unit}"
    return f"{size:,}"
