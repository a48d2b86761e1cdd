"""How the pictures look: colours, a bare figure, a log axis with plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
GREY, DARK = "#9A9A9A", "#333333"
TONES = {"faster": "#009E73", "slower": "#D55E00"}
MARKERS = "osD^vP*X"


def new_figure(width: float = 7.5, height: float = 4.0, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure that belongs to no pyplot state, so that a notebook shows it once."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    ratios = [2, 1] if rows == 2 else None
    axes = figure.subplots(rows, 1, sharex=rows > 1, squeeze=False, height_ratios=ratios)[:, 0]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(True, color="#E5E5E5", linewidth=0.7)
        each.set_axisbelow(True)
    return figure, list(axes)


def plain_log(axis: Axes, which: str, low: float, high: float) -> None:
    """A log axis from low to high with plain numbers at 1, 2, 5 and their tenfolds: fewer if it is long, finer if short."""
    wide, middle, narrow = (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    steps = (1,) if high / low > 1000 else wide if high / low > 8 else middle if high / low > 4 else narrow
    if high / low < 1.6:
        ticks = [round(x, 2) for x in np.arange(0.5, 2.01, 0.05 if high / low < 1.3 else 0.1)]
    else:
        ticks = [s * 10.0**k for k in range(-6, 9) for s in steps]
    ticks = [t for t in ticks if low <= t <= high]
    getattr(axis, f"set_{which}scale")("log")
    getattr(axis, f"set_{which}lim")(low, high)
    getattr(axis, f"set_{which}ticks")(ticks, [f"{t:g}" for t in ticks])
    getattr(axis, f"set_{which}ticks")([], minor=True)
