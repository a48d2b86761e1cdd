"""Pictures of trainings on a game: strength against the clock and against env steps, what a log shows, the measured guide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from rlbench.experiments.game_training import CHANCE
from rlbench.experiments.ppo_guide import BASE
from rlbench.plot_style import COLOURS, DARK, MARKERS, new_figure, plain_log
from rlbench.stats import interquartile_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = {"seconds": "seconds of training", "env_steps": "env steps"}
JUDGED = {"faster": 2, "better": 2, "slower": 5, "worse": 5}  # colours by verdict; else dark
LEAST_ERROR = 1e-9  # of a ratio, below which an axis cannot show it


def strength(rows: pd.DataFrame, title: str = "") -> Figure:
    """Win share against seconds (above) and env steps (below), a column an opponent, all on log axes.

    Each training is a thin line; over seeds, the interquartile mean at the marks that all of a way's trainings have reached.
    Dotted: what random moves win. `rows`: of `experiments.game_training`.
    """
    from matplotlib.figure import Figure

    opponents = list(dict.fromkeys(rows["opponent"]))
    figure = Figure(figsize=(3.3 * len(opponents), 5.6), layout="constrained")
    axes = figure.subplots(2, len(opponents), squeeze=False, sharey=True, sharex="row")
    trained = rows[rows["label"] != CHANCE].assign(seconds=rows["seconds"] + rows["compile_s"])
    for line, (name, words) in zip(axes, ACROSS.items(), strict=True):
        for axis, opponent in zip(line, opponents, strict=True):
            chance = rows[(rows["label"] == CHANCE) & (rows["opponent"] == opponent)]["win_share"]
            _curves(axis, trained[trained["opponent"] == opponent], name, float(chance.iloc[0]))
            axis.set_xlabel(words)
        _long_log(line[0], trained[name].min() / 1.3, trained[name].max() * 1.3)
    for axis, opponent in zip(axes[0], opponents, strict=True):
        axis.set_title(f"against {opponent.replace('_', ' ')}", fontsize=10)
    for line in axes:
        line[0].set_ylabel("share of games won")
        line[0].yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    return figure


def _curves(axis: Axes, rows: pd.DataFrame, across: str, chance: float) -> None:
    _bare(axis)
    for i, (label, part) in enumerate(rows.groupby("label", sort=False)):
        for _, one in part.groupby("seed"):
            axis.plot(one[across], one["win_share"], color=COLOURS[i], linewidth=0.7, alpha=0.5)
        marks = part.groupby("env_steps")
        shared = [steps for steps, at in marks if len(at) == part["seed"].nunique()]
        at = marks[across].median().loc[shared]
        centre = [interquartile_mean(marks.get_group(steps)["win_share"].to_numpy(float)) for steps in shared]
        wider = rows["label"].nunique() - 1 - i  # lines that coincide stay visible
        style = {"color": COLOURS[i], "marker": MARKERS[i], "linewidth": 2 + 2 * wider, "markersize": 5 + 3 * wider}
        axis.plot(at, centre, **style, label=label)
    axis.axhline(chance, color=DARK, linewidth=1.2, linestyle=":", label=CHANCE)


def _bare(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(True, color="#E5E5E5", linewidth=0.7)
    axis.set_axisbelow(True)


def _long_log(axis: Axes, low: float, high: float) -> None:
    """A log axis across, with a number at every tenfold where it is long."""
    plain_log(axis, "x", low, high)
    ticks = [10.0**k for k in range(-6, 10)] if high / low > 30 else list(axis.get_xticks())
    ticks = [tick for tick in ticks if low <= tick <= high]
    axis.set_xticks(ticks, [_short(tick) for tick in ticks])


def _short(number: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def log_of_ppo(logs: pd.DataFrame, title: str = "") -> Figure:
    """How far the first ratios of each round were off 1, and the approximate KL divergence of a round, against env steps.

    `logs`: label, seed, env_step, first_ratio_error, approx_kl. One seed a label is drawn, the first.
    """
    figure, (above, below) = new_figure(height=5.0, rows=2)
    labels = list(dict.fromkeys(logs["label"]))
    for i, label in enumerate(labels):
        part = logs[logs["label"] == label]
        one = part[part["seed"] == part["seed"].iloc[0]]
        style = {"color": COLOURS[i], "linewidth": 1.2 + 1.6 * (len(labels) - 1 - i), "label": label}
        style |= {"marker": MARKERS[i], "markersize": 7} if len(one) == 1 else {}
        above.plot(one["env_step"], one["approx_kl"], **style)
        below.plot(one["env_step"], one["first_ratio_error"].clip(lower=LEAST_ERROR), **style)
    below.set_yscale("log")
    below.set_ylim(LEAST_ERROR / 3, max(1e-5, float(logs["first_ratio_error"].max())) * 3)
    below.set_yticks([LEAST_ERROR, 1e-7, 1e-5], ["nothing", "1e-7", "1e-5"])
    below.set_yticks([], minor=True)
    above.set_ylabel("approximate KL of a round")
    below.set_ylabel("first ratios off 1 by")
    _long_log(below, logs["env_step"].min() / 1.3, logs["env_step"].max() * 1.3)
    below.set_xlabel("env steps (a log axis)")
    above.set_title(title, loc="left", fontsize=11)
    figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def guide(table: pd.DataFrame, title: str = "") -> Figure:
    """A line a change: times as fast as the base; return less the base's, after as many env steps and as many seconds.

    Bars are 95 % intervals over seeds; a mark is filled where the interval says that there is a difference. `table`: of
    `experiments.ppo_guide.table`.
    """
    from matplotlib.figure import Figure

    made = table[table["axis"] != BASE].reset_index(drop=True)
    figure = Figure(figsize=(9.5, 1.5 + 0.3 * len(made)), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True, width_ratios=[1.1, 1, 1])
    columns = (("sps_ratio", "speed"), ("by_steps", "steps_verdict"), ("by_seconds", "seconds_verdict"))
    titles = ("env steps a second,\ntimes those of the base", "return less the base's,\nafter as many env steps",
              "return less the base's,\nafter as many seconds")  # fmt: skip
    for axis, (name, verdict), words in zip(axes, columns, titles, strict=True):
        _bare(axis)
        axis.set_title(words, fontsize=9, loc="left")
        axis.axvline(1 if name == "sps_ratio" else 0, color="black", linewidth=1)
        for y, row in zip(range(len(made))[::-1], made.to_dict("records"), strict=True):
            _interval(axis, y, row, name, row[verdict])
    known = made.dropna(subset=["sps_ratio_low"])
    if len(known):
        low, high = min(0.8, known["sps_ratio_low"].min()) / 1.1, max(1.25, known["sps_ratio_high"].max()) * 1.1
        plain_log(axes[0], "x", low, high)
    axes[0].set_yticks(range(len(made))[::-1], list(made["label"]))
    axes[0].tick_params(axis="y", labelsize=9)
    axes[0].set_ylim(-0.6, len(made) - 0.4)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _interval(axis: Axes, y: int, row: dict[str, Any], name: str, verdict: str) -> None:
    colour = COLOURS[JUDGED[verdict]] if verdict in JUDGED else DARK
    face = colour if verdict in JUDGED else "white"
    axis.plot([row[f"{name}_low"], row[f"{name}_high"]], [y, y], color=colour, linewidth=2, solid_capstyle="butt")
    axis.plot(row[name], y, MARKERS[0], color=colour, markerfacecolor=face, markersize=6)
