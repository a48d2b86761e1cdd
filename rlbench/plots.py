"""Pictures from tidy DataFrames. Every function returns a matplotlib Figure and shows nothing itself.

Colours are Okabe and Ito's, which people with any kind of colour blindness tell apart; nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rlbench.plot_style import COLOURS, DARK, GREY, MARKERS, TONES, new_figure, plain_log
from rlbench.sentences import interval
from rlbench.stats import interquartile_mean, stratified_bootstrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def ladder(rows: pd.DataFrame, title: str = "") -> Figure:
    """One line for each row: its ratio with its interval, the A/A band behind it, on a log axis with 1 marked.

    `rows`: label, ratio, ratio_low, ratio_high, aa_low, aa_high, verdict. Rows without a ratio show their verdict instead.
    """
    count = len(rows)
    figure, (axis,) = new_figure(height=1.5 + 0.4 * count)
    for y, row in zip(range(count)[::-1], rows.to_dict("records"), strict=True):
        if pd.isna(row["ratio"]):
            word = "not measured on this machine" if row["verdict"] == "not measured" else row["verdict"]
            axis.annotate(word, (1, y), xytext=(4, 0), textcoords="offset points", va="center",
                          fontsize=8, color=DARK)  # fmt: skip
            continue
        colour = TONES.get(row["verdict"], DARK)
        axis.barh(y, row["aa_high"] - row["aa_low"], left=row["aa_low"], height=0.75, color="#DDDDDD")
        axis.plot([row["ratio_low"], row["ratio_high"]], [y, y], color=colour, linewidth=2.5, solid_capstyle="butt")
        axis.plot(row["ratio"], y, MARKERS[0], color=colour, markersize=7)
        text = interval(row["ratio"], row["ratio_low"], row["ratio_high"]).replace(" ", "× ", 1) + f"\n{row['verdict']}"
        axis.annotate(text, (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=DARK)
    axis.axvline(1, color="black", linewidth=1)
    known = rows.dropna(subset=["ratio"])
    low = min([0.8, *known["ratio_low"], *known["aa_low"]]) / 1.08
    high = max([1.25, *known["ratio_high"], *known["aa_high"]])
    plain_log(axis, "x", low, high * 1.08)
    axis.set_yticks(range(count)[::-1], list(rows["label"]))
    axis.set_ylim(-0.6, count - 0.4)
    axis.grid(False, axis="y")
    axis.set_xlabel(
        "times as fast as the baseline (right of 1 is faster), 95 % interval\n"
        "grey: A/A band, what the same code timed twice shows"
    )
    axis.set_title(title, loc="left", fontsize=11)
    return figure


def sweep(rows: pd.DataFrame, xlabel: str, title: str = "") -> Figure:
    """Ratio against size, a line for each variant with its interval; the widest A/A band of each size behind.

    `rows`: variant, size, ratio, ratio_low, ratio_high, aa_low, aa_high.
    """
    figure, (axis,) = new_figure()
    rows = rows.dropna(subset=["ratio"]).sort_values("size")
    band = rows.groupby("size")[["aa_low", "aa_high"]].agg({"aa_low": "min", "aa_high": "max"})
    axis.fill_between(
        band.index, band["aa_low"], band["aa_high"], color="#DDDDDD", label="A/A band: no difference seen"
    )
    for i, (variant, part) in enumerate(rows.groupby("variant", sort=False)):
        error = [part["ratio"] - part["ratio_low"], part["ratio_high"] - part["ratio"]]
        axis.errorbar(part["size"], part["ratio"], yerr=error, color=COLOURS[i], marker=MARKERS[i], capsize=3,
                      label=variant)  # fmt: skip
    axis.axhline(1, color="black", linewidth=1)
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(band.index), [str(size) for size in band.index])
    plain_log(axis, "y", min([0.8, *rows["ratio_low"]]) / 1.1, max([1.25, *rows["ratio_high"]]) * 1.1)
    axis.set_xlabel(xlabel)
    axis.set_ylabel("times as fast as the baseline")
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def crossover(rows: pd.DataFrame, title: str = "", mark: tuple[int, int] | None = None) -> Figure:
    """Batch size against hidden width: which device wins, and by how much; without a GPU the CPU's time alone.

    `rows`: batch_size, hidden, cpu_us, and gpu_ratio (CPU time / GPU time, NaN where not measured) with gpu_verdict. `mark`
    frames one (batch_size, hidden).
    """
    measured = bool(rows["gpu_ratio"].notna().any())
    value = rows.pivot(index="hidden", columns="batch_size", values="gpu_ratio" if measured else "cpu_us")
    verdict = rows.pivot(index="hidden", columns="batch_size", values="gpu_verdict")
    figure, (axis,) = new_figure(height=1.6 + 0.55 * len(value))
    logs = np.log10(value.to_numpy(dtype=float))
    span = float(np.nanmax(np.abs(logs))) or 1.0
    limits: dict[str, Any] = {"vmin": -span, "vmax": span, "cmap": "PuOr_r"} if measured else {"cmap": "Blues"}
    axis.pcolormesh(np.arange(logs.shape[1] + 1) - 0.5, np.arange(logs.shape[0] + 1) - 0.5, logs, **limits)
    for (i, j), log in np.ndenumerate(logs):
        cell = value.iat[i, j]
        word = {"faster": "GPU", "slower": "CPU", "no difference seen": "either"}.get(verdict.iat[i, j], "?")
        text = f"{word}\n{cell:.2g}×" if measured else _microseconds(cell)
        dark = abs(log) > 0.6 * span if measured else log > (np.nanmin(logs) + np.nanmax(logs)) / 2
        axis.text(j, i, text, ha="center", va="center", fontsize=9, color="white" if dark else "black")
    if mark is not None and mark[0] in value.columns and mark[1] in value.index:
        i, j = list(value.index).index(mark[1]), list(value.columns).index(mark[0])
        axis.add_patch(_frame(j, i))
    axis.set_xticks(range(len(value.columns)), [str(size) for size in value.columns])
    axis.set_yticks(range(len(value.index)), [str(width) for width in value.index])
    axis.grid(False)
    axis.set_xlabel("batch size")
    axis.set_ylabel("hidden width")
    caption = (
        "CPU time / GPU time of one update"
        if measured
        else "one update on the CPU; the GPU: not measured on this machine"
    )
    axis.set_title(f"{title}\n{caption}" if title else caption, loc="left", fontsize=11)
    return figure


def _frame(x: float, y: float):  # a matplotlib patch
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, fill=False, edgecolor=COLOURS[5], linewidth=2.5)


def _microseconds(value: float) -> str:
    if pd.isna(value):
        return "-"
    return f"{value:.0f} µs" if value < 1000 else f"{value / 1000:.3g} ms"


def phase_shares(rows: pd.DataFrame, title: str = "") -> Figure:
    """A stacked bar for each name, its length the seconds and its pieces the phases, with their shares written in.

    `rows`: name, phase, seconds.
    """
    table = rows.pivot(index="name", columns="phase", values="seconds").fillna(0.0)
    table = table.loc[list(dict.fromkeys(rows["name"])), list(dict.fromkeys(rows["phase"]))]
    figure, (axis,) = new_figure(height=1.9 + 0.55 * len(table))
    left = np.zeros(len(table))
    longest = table.sum(axis=1).max()
    hatches = ["", "", "", "", "", "", "///", "...", "xxx", "\\\\\\", "++"]
    y = range(len(table))[::-1]
    for i, phase in enumerate(table.columns):
        width = table[phase].to_numpy()
        colour = GREY if phase == "other" else COLOURS[i % 7]
        hatch = "" if phase == "other" else hatches[i % len(hatches)]
        axis.barh(y, width, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.8, label=phase)
        for row, (w, start, total) in enumerate(zip(width, left, table.sum(axis=1), strict=True)):
            if w > 0.05 * longest:
                axis.text(start + w / 2, y[row], f"{w / total:.0%}", ha="center", va="center", fontsize=8,
                          bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1})  # fmt: skip
        left += width
    axis.set_yticks(y, list(table.index))
    axis.grid(False, axis="y")
    axis.set_xlabel("seconds")
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def learning_curves(rows: pd.DataFrame, ylabel: str, title: str = "", levels: dict[str, float] | None = None) -> Figure:
    """Interquartile mean over seeds with its 95 % bootstrap band, and each seed as a thin line.

    `rows`: name, seed, env_step, value. `levels`: horizontal lines by name.
    """
    figure, (axis,) = new_figure()
    for i, (name, part) in enumerate(rows.groupby("name", sort=False)):
        table = part.pivot(index="env_step", columns="seed", values="value").dropna()  # (points, seeds)
        axis.plot(table.index, table.to_numpy(), color=COLOURS[i], linewidth=0.6, alpha=0.5)
        centre = interquartile_mean(table.to_numpy(), axis=1)
        if table.shape[1] > 1:
            bands = [stratified_bootstrap([row], lambda g: interquartile_mean(g[0])) for row in table.to_numpy()]
            low, high = np.array(bands).T
            axis.fill_between(table.index, low, high, color=COLOURS[i], alpha=0.2, linewidth=0)
        label = f"{name}: interquartile mean of {table.shape[1]} seeds, 95 % band"
        axis.plot(table.index, centre, color=COLOURS[i], marker=MARKERS[i], markersize=4, linewidth=2, label=label)
    _levels(axis, levels)
    axis.set_xlabel("env steps")
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axis.set_ylabel(ylabel)
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _levels(axis: Axes, levels: dict[str, float] | None) -> None:
    for i, (name, value) in enumerate((levels or {}).items()):
        axis.axhline(value, color=DARK, linewidth=1.2, linestyle=("--", ":", "-.")[i % 3], label=name)


def equity(rows: pd.DataFrame, title: str = "", highlight: Sequence[str] = ()) -> Figure:
    """Equity on a log axis, each name a line, and below how far each highlighted one is under its last high.

    `rows`: name, time, equity (1 at the start).
    """
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    figure, (top, below) = new_figure(height=5.2, rows=2)
    for i, (name, part) in enumerate(rows.groupby("name", sort=False)):
        strong = name in highlight
        style = {"color": COLOURS[i % len(COLOURS)], "linewidth": 2.0 if strong else 1.1}
        style["linestyle"] = "-" if strong else ("--", "-.", ":")[i % 3]
        top.plot(part["time"], part["equity"], label=name, **style)
        if strong or not highlight:
            fall = part["equity"] / part["equity"].cummax() - 1
            below.fill_between(part["time"], fall, 0, color=style["color"], alpha=0.35, linewidth=0)
    values = rows["equity"].to_numpy(float)
    top.axhline(1, color="black", linewidth=0.8)
    plain_log(top, "y", values.min() / 1.05, values.max() * 1.05)
    top.set_ylabel("equity, start = 1")
    top.legend(frameon=False, fontsize=9)
    below.set_ylabel("drawdown")
    below.yaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    dates = AutoDateLocator()
    below.xaxis.set_major_locator(dates)
    below.xaxis.set_major_formatter(ConciseDateFormatter(dates))
    top.set_title(title, loc="left", fontsize=11)
    return figure


def return_against_speed(rows: pd.DataFrame, xlabel: str, ylabel: str, title: str = "") -> Figure:
    """Each run a mark, seconds or rate across, return upwards: speed that costs returns shows at once.

    `rows`: name, speed, value.
    """
    figure, (axis,) = new_figure()
    for i, (name, part) in enumerate(rows.groupby("name", sort=False)):
        axis.scatter(part["speed"], part["value"], color=COLOURS[i], marker=MARKERS[i], s=45, alpha=0.85, label=name)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if abs(x) >= 10 else f"{x:g}")
    axis.set_title(title, loc="left", fontsize=11)
    axis.legend(frameon=False, fontsize=9)
    return figure
