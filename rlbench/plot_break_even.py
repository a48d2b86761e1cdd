"""A picture of costs paid at once against time saved with every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rlbench.plot_style import COLOURS, MARKERS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST, MOST = 1e2, 1e8  # updates


def break_even(rows: pd.DataFrame, title: str = "") -> Figure:
    """Total seconds over updates: eager from nothing, each variant from its compilation; crossings are marked.

    `rows`: variant, cache, compile_s, update_us, baseline_us, updates (those after which it has paid back; infinite: never).
    """
    figure, (axis,) = new_figure()
    finite = rows["updates"].replace(np.inf, np.nan).dropna()
    last = min(MOST, max(LEAST * 100, 10 * float(finite.max()) if len(finite) else MOST / 100))
    updates = np.logspace(np.log10(LEAST), np.log10(last), 60)
    axis.plot(updates, updates * float(rows["baseline_us"].iloc[0]) * 1e-6, color="black", linewidth=2, label="eager")
    for i, row in enumerate(rows.to_dict("records")):
        seconds = row["compile_s"] + updates * row["update_us"] * 1e-6
        label = f"{row['variant']}, cache {row['cache']}"
        axis.plot(updates, seconds, color=COLOURS[i], linestyle=("-", "--")[i % 2], label=label)
        if np.isfinite(row["updates"]) and LEAST <= row["updates"] <= last:
            at = row["updates"] * row["baseline_us"] * 1e-6
            axis.plot(row["updates"], at, MARKERS[0], color=COLOURS[i], markersize=7)
            axis.annotate(f"{row['updates']:,.0f}", (row["updates"], at), xytext=(4, -12), textcoords="offset points",
                          fontsize=8)  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("updates")
    axis.set_ylabel("seconds in all, compiling included")
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure
