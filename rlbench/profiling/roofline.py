"""The roofline: what each phase computes for each byte it moves, against what this machine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlbench.plot_style import COLOURS, DARK, GREY, MARKERS, new_figure
from rlbench.profiling.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def has_roofline(evidence: Evidence) -> bool:
    """Whether there is a phase with arithmetic to draw."""
    return evidence.peaks is not None and any(row.flops and row.bytes for row in evidence.light)


def roofline(evidence: Evidence) -> Figure:
    """Operations a second over operations a byte, both on log axes. Above the sloping roof memory forbids, above the flat one
    arithmetic does."""
    peaks = evidence.peaks
    rows = [row for row in evidence.light if row.flops and row.bytes]
    figure, (axis,) = new_figure(7.5, 4.4)
    top = max(peaks.matmul.values())
    intensities = [row.flops / row.bytes for row in rows]
    x = np.geomspace(min([*intensities, 0.1]) / 3, max([*intensities, top / peaks.copy]) * 5, 200)
    axis.plot(x, np.minimum(top, x * peaks.copy), color=DARK, linewidth=1.5)
    axis.annotate(
        f"{per_second(top)} in {max(peaks.matmul, key=lambda name: peaks.matmul[name])}",
        (x[-1], top),
        textcoords="offset points",
        xytext=(0, 4),
        ha="right",
        color=DARK,
        fontsize=8,
    )
    axis.annotate(
        f"memory {peaks.copy / 1e9:.0f} GB/s",
        (x[5], x[5] * peaks.copy),
        textcoords="offset points",
        xytext=(8, -2),
        color=DARK,
        fontsize=8,
    )
    for i, row in enumerate(rows):
        reached = row.flops / row.seconds
        mark = MARKERS[i % len(MARKERS)]
        colour = GREY if row.phase == "all phases" else COLOURS[i % len(COLOURS)]
        label = f"{row.phase}: {per_second(reached)}, {100 * row.share:.0f} % of its floor"
        axis.plot(row.flops / row.bytes, reached, mark, color=colour, markersize=8, label=label, linestyle="none")
    axis.set(xscale="log", yscale="log", xlabel="operations for each byte moved", ylabel="operations a second")
    lowest = min([row.flops / row.seconds for row in rows])
    axis.set_ylim(lowest / 5, top * 3)
    axis.legend(fontsize=8, frameon=False, loc="lower right")
    axis.set_title(
        f"{evidence.name} on {evidence.device}: where each phase stands under the roof", fontsize=10, loc="left"
    )
    return figure


def per_second(rate: float) -> str:
    """Operations a second in a unit that suits."""
    for size, unit in UNITS:
        if rate >= size:
            return f"{rate / size:.3g} {unit}FLOP/s"
    return f"{rate:.3g} FLOP/s"
