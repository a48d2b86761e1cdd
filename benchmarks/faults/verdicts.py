"""What a profile said of a planted fault, beside what removing it brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.text import aligned
from rlbench.results import Row
from rlbench.stats import bootstrap_interval

FACTOR = 1.5  # how far a prediction may be off


def metric_of(fault: str) -> str:
    """The rate that counts: with another batch an env step is not the same learning."""
    return "learnt_per_s" if fault == "small_batch" else "sps"


def measured(rates: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The gain of removing the fault, median over rounds with a 95 % interval, and the healthy run against itself."""
    slow, healthy, again = (np.log(rates[side]) for side in ("slow", "healthy", "again"))
    gains, control = healthy - slow, again - healthy
    low, high = bootstrap_interval(gains, np.median)
    aa_low, aa_high = bootstrap_interval(control, np.median)
    found = {"gain": np.median(gains), "gain_low": low, "gain_high": high, "aa_low": aa_low, "aa_high": aa_high}
    return {name: float(np.exp(value)) for name, value in found.items()}


def judged(document: Mapping[str, Any], fault: str, gain: float) -> Row:
    """Whether the fault was found, at which place, and how far the prediction is from the gain."""
    advised = [advice for advice in document["advice"] if advice["kind"] != "against"]
    names = [advice["name"] for advice in advised]
    place = names.index(fault) + 1 if fault in names else None
    predicted = advised[place - 1]["predicted_gain"] if place else None
    factor = max(predicted / gain, gain / predicted) if predicted else None
    own = [phase for phase in document["phases"] if not phase["part_of"]]
    return {
        "found": place is not None,
        "place": place,
        "first": names[0] if names else None,
        "predicted": predicted,
        "factor": factor,
        "within": factor is not None and factor <= FACTOR,
        "other_share": sum(phase["share"] for phase in own if phase["name"] == "other"),
        "shares_sum": sum(phase["share"] for phase in own),
        "advice": [(each["name"], each["kind"], each["predicted_gain"]) for each in document["advice"]],
    }


def table(rows: Sequence[Row]) -> str:
    """A line a fault, and how many were found, came first, and were predicted within the factor."""
    head = ("target", "fault", "place", "predicted", "measured", "95 % interval", "healthy again", "off by", "other")
    lines = [
        (
            row["target"],
            row["fault"],
            str(row["place"] or "not found"),
            "-" if row["predicted"] is None else f"{row['predicted']:.2f}x",
            f"{row['gain']:.2f}x",
            f"[{row['gain_low']:.2f}, {row['gain_high']:.2f}]",
            f"[{row['aa_low']:.2f}, {row['aa_high']:.2f}]",
            "-" if row["factor"] is None else f"{row['factor']:.2f}",
            f"{100 * row['other_share']:.1f} %",
        )
        for row in rows
    ]
    return "\n".join([aligned(head, lines, {0, 1}, rows), "", *summary(rows)])


def summary(rows: Sequence[Row]) -> list[str]:
    """A sentence a target."""
    found = []
    for target in dict.fromkeys(row["target"] for row in rows):
        mine = [row for row in rows if row["target"] == target]
        first = sum(row["place"] == 1 for row in mine)
        within = sum(row["within"] for row in mine)
        found.append(
            f"{target}: {sum(row['found'] for row in mine)} of {len(mine)} found, {first} first, "
            f"{within} predicted within a factor {FACTOR}"
        )
    return found
