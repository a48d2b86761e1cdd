"""What is shown of the loops (`experiments.loops`): a picture of learning against the clock, and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rlbench.experiments.loops import PARTS, PYTHON
from rlbench.plot_style import COLOURS, MARKERS, new_figure, plain_log
from rlbench.sentences import compare, learning, seconds, tone
from rlbench.stats import interquartile_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Said = Iterator[tuple[str, str]]  # (sentence, tone)


def over_seconds(points: pd.DataFrame, ylabel: str, title: str = "") -> Figure:
    """Returns of evaluations against seconds of training on a log axis: each seed a thin line, and over seeds the
    interquartile mean at the median of seconds.

    `points`: name, seed, env_step, seconds, value.
    """
    figure, (axis,) = new_figure()
    for i, (name, part) in enumerate(points.groupby("name", sort=False)):
        for _, one in part.groupby("seed"):
            axis.plot(one["seconds"], one["value"], color=COLOURS[i], linewidth=0.6, alpha=0.5)
        steps = part.groupby("env_step")
        centre = [interquartile_mean(value.to_numpy(float)) for _, value in steps["value"]]
        style = {"color": COLOURS[i], "marker": MARKERS[i], "linewidth": 2, "markersize": 5}
        axis.plot(steps["seconds"].median(), centre, label=name, **style)
    plain_log(axis, "x", points["seconds"].min() / 1.2, points["seconds"].max() * 1.2)
    axis.set_xlabel("seconds of training, compiling included (a log axis)")
    axis.set_ylabel(ylabel)
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def beside_products(rows: pd.DataFrame, title: str = "") -> Figure:
    """A bar for each way to run an iteration, its length the microseconds; the time of the products is marked.

    `rows`: variant, iteration_us, products_us, times_products.
    """
    known = rows.dropna(subset=["iteration_us"])
    figure, (axis,) = new_figure(height=1.7 + 0.4 * len(known))
    y = range(len(known))[::-1]
    axis.barh(y, known["iteration_us"], color=COLOURS[0], height=0.6)
    for place, row in zip(y, known.to_dict("records"), strict=True):
        text = f"{row['iteration_us']:,.0f} µs, {row['times_products']:.1f} × its products"
        axis.annotate(text, (row["iteration_us"], place), xytext=(5, 0), textcoords="offset points", va="center",
                      fontsize=8)  # fmt: skip
    label = "its matrix products at this machine's peak"
    axis.axvline(float(known["products_us"].iloc[0]), color="black", linewidth=1.2, linestyle="--", label=label)
    axis.set_xlim(0, known["iteration_us"].max() * 1.45)
    axis.set_yticks(y, list(known["variant"]))
    axis.grid(False, axis="y")
    axis.set_xlabel("microseconds of an iteration")
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=9)
    return figure


def answer(rows: pd.DataFrame, quickest: str) -> tuple[str, str]:
    """What Python itself costs of an iteration, from the rows of one size: (sentence, tone)."""
    by_name = rows.drop_duplicates("variant").set_index("variant")
    found = {"variant": quickest, **by_name.loc[quickest].to_dict()}
    text = compare(f"Here an iteration under loop={quickest}", "one under plain", found)
    plain, around, inside = (float(by_name.loc[name, "iteration_us"]) for name in (PYTHON, PARTS, quickest))
    own = np.nan_to_num(around - inside)
    if own <= 0:
        return f"{text} What Python itself costs cannot be told apart.", tone(found)
    parts = f"with fast parts {seconds(around * 1e-6)}, under loop={quickest} {seconds(inside * 1e-6)}"
    share = (
        f"so Python itself costs {seconds(own * 1e-6)} an iteration, {own / around:.0%} of it once the parts are fast"
    )
    return f"{text} It takes {seconds(plain * 1e-6)} under plain, {parts}: {share}.", tone(found)


def widest(rows: pd.DataFrame, quickest: str) -> Said:
    """For each axis of a sweep, the gain at its first and at its last value."""
    for axis, part in rows[rows["variant"] == quickest].groupby("over", sort=False):
        ends = part.sort_values("size")
        for row in ends.iloc[[0, -1]].to_dict("records"):
            yield (
                compare(f"With {axis} {row['size']:,} an iteration under loop={quickest}", "one under plain", row),
                tone(row),
            )


def bounds(rows: pd.DataFrame) -> Said:
    """The most that a loop could bring, over the cost of an env step."""
    told = [f"{row['ratio']:.3g} where a step costs {seconds(row['size'] * 1e-6)}" for row in rows.to_dict("records")]
    yield f"The most times as fast that any loop could make an iteration: {', '.join(told)}.", "note"


def learnt(whole: pd.DataFrame, equal: pd.DataFrame) -> Said:
    """Speed, return, and seconds to a return of whole trainings against plain.

    `whole`: a summary of studies, its ratio named ratio, its speed verdict. `equal`: env, label, equal, seeds.
    """
    same = equal.set_index(["env", "label"])
    for row in whole.to_dict("records"):
        if row["verdict"] == "baseline" or row["label"].endswith("again"):
            continue
        what = f"Training on {row['env']} under {row['label']}"
        text = f"{compare(what, 'training under plain', row)} {learning(row)}"
        ends = same.loc[(row["env"], row["label"])]
        text += f" Seed by seed, {ends['equal']} of {ends['seeds']} final returns are exactly plain's."
        if row["to_return_ratio"] == row["to_return_ratio"]:
            text += f" It reaches a return of {row['to_return']:.3g} {row['to_return_ratio']:.1f} times as soon."
        yield text, tone(row)
