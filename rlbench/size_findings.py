"""What is shown of a study over sizes (`experiments.sizes`): a picture and sentences, from its table of configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from rlbench.plot_style import COLOURS, DARK, MARKERS, new_figure
from rlbench.sentences import interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES = {"batch": "batch size", "width": "width of the hidden layers", "network": "network"}
COSTS = ("label", "parameters", "update_flops", "update", "seconds", "samples_per_s", "speed")
RETURNS = ("label", "share", "share_low", "share_high", "gain_per_sample", "seeds")


def return_against_seconds(table: pd.DataFrame, title: str = "") -> Figure:
    """A mark for each configuration: seconds of a training across, share of the best possible return upwards, intervals.

    Lines join the batch sizes, and the widths, in order, so that it shows where "more" leads.
    """
    figure, (axis,) = new_figure(height=4.8)
    base = table[table["axis"] == "as given"]
    for i, (name, words) in enumerate(AXES.items()):
        part = table[table["axis"] == name]
        _marks(axis, part, COLOURS[i], MARKERS[i], f"another {words}")
        if name in ("batch", "width"):
            size = "batch_size" if name == "batch" else "parameters"
            line = pd.concat([base, part]).sort_values(size)
            axis.plot(line["seconds"], line["share"], color=COLOURS[i], linewidth=1, alpha=0.7)
    _marks(axis, base, "black", MARKERS[len(AXES)], "as given", left=True)
    axis.set_xlabel("seconds of a training, median over seeds")
    axis.set_ylabel("share of the best causal policy's return")
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    axis.margins(0.12, 0.1)
    axis.set_title(title, loc="left", fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _marks(axis: Any, part: pd.DataFrame, colour: str, marker: str, label: str, left: bool = False) -> None:
    errors = {
        f"{side}err": [part[name] - part[f"{name}_low"], part[f"{name}_high"] - part[name]]
        for side, name in (("x", "seconds"), ("y", "share"))
    }
    style = {"color": colour, "marker": marker, "linestyle": "none", "capsize": 2, "elinewidth": 1}
    axis.errorbar(part["seconds"], part["share"], **errors, **style, markersize=7, label=label)
    for row in part.to_dict("records"):
        where = (row["seconds"], row["share"])
        place = {"xytext": (-6, 5), "ha": "right"} if left else {"xytext": (6, 5)}
        axis.annotate(row["label"], where, **place, textcoords="offset points", fontsize=8, color=DARK)


def answer(table: pd.DataFrame) -> str:
    """One sentence: faster, better, or neither, of the largest batch and the widest layers against the settings as given."""
    base = table[table["axis"] == "as given"].iloc[0]
    said = []
    for axis, size in (("batch", "batch_size"), ("width", "parameters")):
        part = table[(table["axis"] == axis) & (table[size] > base[size])]
        if len(part):
            row = part.loc[part[size].idxmax()]
            said.append(f"{row['label']} against {_given(base, axis)}: {_judged(row)}")
    return f"{'; '.join(said)}." if said else "No batch is larger, and no net wider, than what is given."


def sentences(table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """(sentence, tone): for each axis its configurations against the settings as given, then what one sample brings.

    The tone is that of time, where all that the sentence speaks of agree.
    """
    base = table[table["axis"] == "as given"].iloc[0]
    for name, words in AXES.items():
        part = table[table["axis"] == name]
        if len(part):
            said = "; ".join(_one(row, base) for row in part.to_dict("records"))
            tones = {speed if speed in ("faster", "slower") else "none" for speed in part["speed"]}
            text = f"Another {words} than {_given(base, name)}, at as many env steps and updates: {said}."
            yield text, tones.pop() if len(tones) == 1 else "none"
    yield from _per_sample(table)


def _judged(row: Mapping[str, Any]) -> str:
    """Faster, better, or neither, of one configuration."""
    low, high = row["share_difference_low"], row["share_difference_high"]
    learnt = "better" if low > 0 else "worse" if high < 0 else "no difference seen in return"
    time = str(row["speed"])
    known = {"no difference seen": "no difference seen in time", "too few seeds": "too few seeds to judge time"}
    return f"{known.get(time, time)}, {learnt}"


def _given(base: Mapping[str, Any], axis: str) -> str:
    return str(base[{"batch": "batch_size", "width": "hidden", "network": "network"}[axis]])


def _one(row: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    time = interval(row["time_ratio"], row["time_ratio_low"], row["time_ratio_high"])
    gained = interval(*(100 * row[f"share_difference{end}"] for end in ("", "_low", "_high")), digits=0)
    how = "" if row["update"] == base["update"] else f", update {row['update']} and not {base['update']}"
    differs = f"its share of the best return differs by {gained} points"
    return f"{row['label']} takes {time} times as long{how}, {differs} ({_judged(row)})"


def _per_sample(table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """What the largest batch does to samples a second and to what each of them brings, against the smallest."""
    batches = table[table["axis"].isin(["as given", "batch"])].sort_values("batch_size")
    if len(batches) < 2:
        return
    small, large = batches.iloc[0], batches.iloc[-1]
    rate = large["samples_per_s"] / small["samples_per_s"]
    words = f"From a batch of {small['batch_size']} to one of {large['batch_size']}, samples a second change {rate:.2g}-fold"
    gains = [row["gain_per_sample"] for row in (small, large)]
    if min(gains) > 0:
        text = f"{words}, and what each sample brings in return above chance {gains[1] / gains[0]:.2g}-fold."
    else:
        text = f"{words}; one of them earns no more than chance, so there is no gain a sample to compare."
    yield text, "note"
