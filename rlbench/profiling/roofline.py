"""The roofline: how fast each phase computes, over what it computes for each byte it moves, under what this machine can do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlbench.plot_style import COLOURS, DARK, MARKERS, new_figure, plain_log
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.labels import label_marks
from rlbench.profiling.light import ALL
from rlbench.profiling.limits import Light, Peaks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.profiling.report import Report

STYLES = {"-": "—", "--": "- -"}
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
PERCENT_NOTE = "Percent: the least time that its arithmetic, bytes and calls must take here, of the time that it took."
GPU_NOTE = "On a GPU kernels may run when their phase is over: only the mark of all phases stands against the roofs."


def has_roofline(evidence: Evidence) -> bool:
    """Whether there is a phase with arithmetic to draw."""
    return evidence.peaks is not None and bool(_drawn(evidence))


def roofline(report: Report | Evidence) -> Figure:
    """Operations a second over operations a byte, both on log axes, with a mark for each phase that has products of matrices.

    No mark can lie above the flat roof, the fastest products, nor above the dashed slope, the fastest memory; tensors too large
    for the caches stay below the other slope. How far a mark lies below is what the phase loses to calls of operators, to Python,
    and to waiting.

    Raises:
        ValueError: where the profile has no counted arithmetic.
    """
    evidence = report if isinstance(report, Evidence) else report.evidence
    peaks, rows = evidence.peaks, _drawn(evidence)
    if peaks is None or not rows:
        raise ValueError(
            f"the profile of {evidence.name} has no phase with counted arithmetic, so there is no roofline: let it run for more "
            "updates (`has_roofline` tells)."
        )
    figure, (axis,) = new_figure(7.5, 4.8)
    x, y = _limits(rows, peaks)
    unit, prefix = next((size, letter) for size, letter in UNITS if max(peaks.matmul.values()) >= 10 * size)
    plain_log(axis, "x", *x)
    plain_log(axis, "y", y[0] / unit, y[1] / unit)
    _roofs(axis, peaks, _types(evidence), x, unit)
    marks = []
    for i, row in enumerate(rows):
        at = row.flops / row.bytes, row.flops / row.seconds / unit
        whole = row.phase == ALL
        colour, marker = (DARK, "s") if whole else (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)])
        look = {"markersize": 11, "fillstyle": "none", "markeredgewidth": 1.5} if whole else {"markersize": 7}
        axis.plot(*at, marker, color=colour, linestyle="none", zorder=3, **look)
        marks.append((*at, f"{row.phase} {100 * row.share:.{0 if row.share >= 0.1 else 1}f} %"))
    axis.set_xlabel("operations for each byte moved")
    axis.set_ylabel(f"{prefix}FLOP/s: operations of matrix products a second")
    title = f"{evidence.name}: its phases under the roofs of\n{_where(evidence)}"
    axis.set_title(title.replace("$", r"\$"), fontsize=10, loc="left")  # else read as mathematics
    figure.supxlabel("\n".join(_notes(evidence, rows)), x=0.01, ha="left", fontsize=8, color=DARK)
    label_marks(axis, marks)
    return figure


def _drawn(evidence: Evidence) -> list[Light]:
    """Rows that have a place on two log axes, the sum of all last."""
    return [row for row in evidence.light if row.flops and row.bytes and row.seconds]


def _limits(rows: list[Light], peaks: Peaks) -> tuple[tuple[float, float], tuple[float, float]]:
    """Whole tenfolds that hold all marks and the ridges of the roofs, in operations a byte and a second."""
    top = max(peaks.matmul.values())
    intensities = [row.flops / row.bytes for row in rows]
    rates = [row.flops / row.seconds for row in rows]
    x = _tenfolds(min(*intensities, 0.5), max(*intensities, top / peaks.copy))
    return x, _tenfolds(min(*rates, top / 100), max(*rates, top))


def _tenfolds(low: float, high: float) -> tuple[float, float]:
    return 10.0 ** math.floor(math.log10(low / 1.5)), 10.0 ** math.ceil(math.log10(high * 2))


def _types(evidence: Evidence) -> list[str]:
    """Types of numbers whose peaks are drawn: float32, and those that products were seen in."""
    matmul = evidence.peaks.matmul
    seen = {work.dtype for work in evidence.counted.work if work.flops} if evidence.counted else set()
    top = max(row.flops / row.seconds for row in _drawn(evidence))
    if "tf32" in matmul and top > matmul.get("float32", 0.0):
        seen.add("tf32")
    return [name for name in matmul if name == "float32" or name in seen] or list(matmul)[:1]


def _roofs(axis: Axes, peaks: Peaks, types: list[str], x: tuple[float, float], unit: float) -> None:
    top = max(peaks.matmul[name] for name in types)
    for name in types:
        rate = peaks.matmul[name]
        axis.plot([rate / (peaks.cache or peaks.copy), x[1]], [rate / unit] * 2, color=DARK, linewidth=1.5)
        text = f"{name} {per_second(rate)}"
        at = {"xy": (x[1], rate / unit), "xytext": (-4, 3), "textcoords": "offset points", "ha": "right"}
        axis.annotate(text, **at, fontsize=8, color=DARK)
    slopes = [("memory", peaks.copy, "-")]
    if peaks.cache is not None and peaks.cache > 1.1 * peaks.copy:
        slopes.append(("cache", peaks.cache, "--"))
    low = axis.get_ylim()[0] * unit
    for _, rate, style in slopes:
        start = max(x[0], low / rate)
        axis.plot([start, top / rate], [start * rate / unit, top / unit], color=DARK, linewidth=1.5, linestyle=style)
    text = "   ".join(f"{STYLES[style]} {name} {gigabytes(rate)}" for name, rate, style in slopes)
    axis.annotate(text, (0.01, 0.985), xycoords="axes fraction", va="top", fontsize=8, color=DARK)


def _where(evidence: Evidence) -> str:
    """The part of the machine, by name."""
    gpus = evidence.machine.get("gpus") or ()
    if evidence.device.startswith("cuda"):
        name = gpus[int(evidence.device.partition(":")[2] or 0)] if gpus else "the GPU"
        return f"{name} ({evidence.device})"
    return f"{evidence.machine.get('cpu') or 'the processor'} ({evidence.device}, {_threads(evidence)})"


def _threads(evidence: Evidence) -> str:
    count = evidence.machine.get("torch_threads")
    return f"{count} thread{'s' if count != 1 else ''}"


def _notes(evidence: Evidence, rows: list[Light]) -> list[str]:
    notes = [PERCENT_NOTE]
    left = [row.phase for row in evidence.light if row not in rows]
    if left:
        notes.append(f"No place on these axes, where products or bytes were not counted: {', '.join(left)}.")
    return notes + ([GPU_NOTE] if evidence.device.startswith("cuda") else [])


def per_second(rate: float) -> str:
    """Operations a second in a unit that suits."""
    for size, letter in UNITS:
        if rate >= size:
            return f"{rate / size:.3g} {letter}FLOP/s"
    return f"{rate:.3g} FLOP/s"


def gigabytes(rate: float) -> str:
    return f"{rate / 1e9:,.0f} GB/s" if rate >= 1e11 else f"{rate / 1e9:.3g} GB/s"
