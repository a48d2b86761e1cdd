"""Sentences about trainings on a game (`experiments.game_training`), and about the measured guide (`experiments.ppo_guide`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from rlbench.experiments.game_training import CHANCE
from rlbench.experiments.ppo_guide import AXES, BASE, FEW_SEEDS
from rlbench.reporting.findings import QUICK
from rlbench.sentences import interval, seconds

Said = Iterator[tuple[str, str]]  # (sentence, tone)
NO_DIFFERENCE = "no difference seen"


def answer(ends: pd.DataFrame, label: str, game: str) -> str:
    """How strong the policies of a way are at the end of their time: `ends` as of `strength_tables.ends`."""
    mine, chance = (ends[ends["label"] == name].set_index("opponent") for name in (label, CHANCE))
    head = mine.iloc[0]
    parts = [
        f"{_won(row)} against {_plain(name)} (random moves {chance.loc[name, 'win_share']:.0%})"
        for name, row in mine.iterrows()
    ]
    start = f"{game}: after {seconds(head['seconds'])} of training under {label}, {head['env_steps']:,.0f} env steps, PPO wins"
    return f"{start} {', '.join(parts)}; {_counted(head)}."


def _won(row: Mapping[str, Any]) -> str:
    return f"{row['win_share']:.0%} [{row['win_low']:.0%}, {row['win_high']:.0%}]"


def _counted(row: Mapping[str, Any]) -> str:
    of = f"of {row['seeds']} seeds" if row["seeds"] > 1 else "of one seed"
    return f"{row['games']} games each, {of}; Wilson's 95 % interval"


def _plain(name: Any) -> str:
    return str(name).replace("_", " ")


def strengths(ends: pd.DataFrame) -> Said:
    """The ways against each other, after their time, an opponent each."""
    trained = ends[ends["label"] != CHANCE]
    for opponent, part in trained.groupby("opponent", sort=False):
        each = [
            f"{row['label']} {_won(row)} after {row['env_steps']:,.0f} env steps in {seconds(row['seconds'])}"
            for row in part.to_dict("records")
        ]
        yield f"Games won against {_plain(opponent)}: {'; '.join(each)}.", "note"


def pace(speeds: pd.DataFrame, base: str = "plain") -> Said:
    """Env steps a second of whole trainings: `speeds` as of `strength_tables.speeds`."""
    of = speeds.set_index("label")
    told = [f"{label} {row['sps']:,.0f}" for label, row in of.iterrows()]
    text = f"Env steps a second, self-play and updates together: {', '.join(told)}"
    if base in of.index:
        times = [f"{label} {row['sps'] / of.loc[base, 'sps']:.2g}" for label, row in of.iterrows() if label != base]
        text += f"; times those of {base}: {', '.join(times)}" if times else ""
    yield f"{text} (medians over seeds; no control beside them).", "note"


def sameness(same: pd.DataFrame, base: str = "plain", other: str = "fast") -> Said:
    """Whether a way learns what another does: `same` as of `strength_tables.same_strength`."""
    if not len(same):
        yield f"{other} and {base} have no mark in common, so that nothing is said of what they learn.", "not measured"
        return
    equal = int(same["equal_until"].min())
    if equal:
        yield (
            f"Up to {equal:,} env steps {other} and {base} win, draw and lose as many games in every match.",
            "none",
        )
    for row in same.to_dict("records"):
        verdict = row["verdict"].removesuffix(f" ({QUICK})")
        gained = interval(*(100 * row[name] for name in ("difference", "low", "high")), digits=1)
        text = f"Against {_plain(row['opponent'])}, after {row['env_steps']:,} env steps each, {other} scores {row['other']:.0%}"
        text += f" and {base} {row['base']:.0%}, a difference of {gained} points over {row['seeds']} seeds: {verdict}."
        yield text, "none" if verdict == "learns the same" else "slower" if verdict == "learns less" else "note"


def ratios(logs: pd.DataFrame) -> Said:
    """What the log says of the first ratios, which tell whether the old log-probabilities are right, and of the KL."""
    told = []
    for label, part in logs.groupby("label", sort=False):
        worst, kl = float(part["first_ratio_error"].max()), float(part["approx_kl"].max())
        told.append(
            f"{label} {worst:.1e} (KL at most {kl:.2g})" if worst else f"{label} nothing at all (KL at most {kl:.2g})"
        )
    yield f"Before the first update of a round ratios are off 1 by at most: {'; '.join(told)}.", "note"


def guide(table: pd.DataFrame) -> Said:
    """One sentence a setting, then which changes to make and which not: `table` as of `ppo_guide.table`.

    The tone is that of speed, where all that the sentence speaks of agree.
    """
    base = table[table["axis"] == BASE].iloc[0]
    for axis, words in AXES.items():
        part = table[table["axis"] == axis]
        if len(part):
            said = "; ".join(_change(row) for row in part.to_dict("records"))
            tones = {row if row in ("faster", "slower") else "none" for row in part["speed"]}
            yield f"{axis} ({words}): {said}.", tones.pop() if len(tones) == 1 else "none"
    yield from _advice(table[table["axis"] != BASE], int(base["seeds"]))


def _change(row: Mapping[str, Any]) -> str:
    speed = interval(row["sps_ratio"], row["sps_ratio_low"], row["sps_ratio_high"])
    parts = [f"{row['value']} runs {speed} times as fast as the base ({row['speed']})"]
    for name, words in (
        ("steps", "after as many env steps its return differs by"),
        ("seconds", "after as many seconds by"),
    ):
        verdict = row[f"{name}_verdict"]
        if verdict == "not evaluated":
            parts.append(f"{words.removesuffix(' by').removesuffix(' its return differs')} it was not evaluated")
            continue
        centre, low, high = (row[f"by_{name}{end}"] for end in ("", "_low", "_high"))
        numbers = f"{centre:+.3f} [{low:+.3f}, {high:+.3f}]"
        parts.append(f"{words} {numbers} ({verdict})")
    return ", ".join(parts)


def _advice(made: pd.DataFrame, seeds: int) -> Said:
    """The changes that bring more return in as many seconds, those that bring less, and those that speed alone."""
    if (made["seconds_verdict"] == FEW_SEEDS).all():
        yield f"With {seeds} seeds nothing is said of which change is better: that takes five or more.", "not measured"
        return
    groups = {
        "Better than the base after as many seconds": made["seconds_verdict"] == "better",
        "Worse after as many seconds": made["seconds_verdict"] == "worse",
        "Faster, and no difference seen after as many seconds": (made["speed"] == "faster")
        & (made["seconds_verdict"] == NO_DIFFERENCE),
        "Faster, and worse after as many env steps: speed that costs return": (made["speed"] == "faster")
        & (made["steps_verdict"] == "worse"),
    }
    for words, which in groups.items():
        names = ", ".join(made.loc[which, "label"]) or "none"
        yield f"{words}: {names}.", "note"
