"""Sentences from measured rows: ratios with intervals, slower as plainly as faster, and advice against what costs time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from rlbench.reporting.findings import QUICK

TONES = {"faster": "faster", "slower": "slower"}
TONES |= dict.fromkeys(("not measured", "not the same", "failed"), "not measured")
ELSEWHERE = ": not measured on this machine"  # the end of a reason, as rows have it


def interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """1.23 [1.10, 1.40]; with two places more where the value is below 0.1, so that it does not read as nothing."""
    places = digits + 2 if digits and 0 < abs(value) < 0.1 else digits
    return f"{value:.{places}f} [{low:.{places}f}, {high:.{places}f}]"


def tone(row: Mapping[str, Any]) -> str:
    """The tone of a finding about a row with a `verdict`."""
    return TONES.get(str(row["verdict"]), "none")


def compare(what: str, against: str, row: Mapping[str, Any]) -> str:
    """One sentence: is `what` faster than `against`, by the row's ratio, interval, A/A band and verdict?"""
    verdict, reason = str(row["verdict"]), row.get("not_measured")
    if isinstance(reason, str):
        return f"{what} against {against}: not measured on this machine ({reason.removesuffix(ELSEWHERE)})."
    if row["ratio"] != row["ratio"]:
        return f"{what} against {against}: {verdict}, so there is no ratio."
    ratio = interval(row["ratio"], row["ratio_low"], row["ratio_high"])
    if verdict in ("faster", "slower"):
        return f"{what} is {verdict} than {against}: {ratio} times as fast."
    band = f"the same code timed twice reads {row['aa_low']:.2f} to {row['aa_high']:.2f}"
    seen = f"{verdict} to tell" if verdict.startswith("too few") else verdict
    return f"{what} against {against}: {seen}, {ratio} times as fast ({band})."


def advise(row: Mapping[str, Any], switch: str) -> str:
    """What to do about a switch on this machine."""
    if row["verdict"] == "faster":
        return f"Turn on {switch} here."
    if row["verdict"] == "slower":
        return f"Do not turn on {switch} here: it costs time."
    if row["verdict"] == "no difference seen":
        return f"Leave off {switch}: nothing is gained here."
    return f"There is nothing to say here about {switch}."


def learning(row: Mapping[str, Any]) -> str:
    """What a study's row says of learning, as a sentence without the stamp that the finding bears itself."""
    text = str(row["learns"]).removesuffix(f" ({QUICK})")
    return f"{text[:1].upper()}{text[1:]}."


def by_verdict(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """(sentence, tone) for each verdict that occurs: which variants are faster, slower, or neither, with their ratios.

    `rows`: label, verdict, ratio, ratio_low, ratio_high, not_measured.
    """
    starts = {
        "faster": "Faster than plain's variant here, times as fast",
        "slower": "Slower than plain's variant here, so leave these off, times as fast",
        "no difference seen": "No difference seen from plain's variant, times as fast",
        "too few rounds": "Too few rounds to tell, times as fast",
        "not measured": "Not measured on this machine",
        "not the same": "Another answer than the plainest variant's, so not timed",
        "failed": "Failed",
    }
    for verdict, start in starts.items():
        part = rows.loc[rows["verdict"] == verdict].sort_values(by="ratio", ascending=False)
        if len(part):
            words = [_named(row) for row in part.to_dict("records")]
            yield f"{start}: {'; '.join(words)}.", TONES.get(verdict, "none")


def _named(row: Mapping[str, Any]) -> str:
    if row["ratio"] != row["ratio"]:
        return str(row["label"])
    return f"{row['label']}: {interval(row['ratio'], row['ratio_low'], row['ratio_high'])}"


def seconds(value: float) -> str:
    """A duration with a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
