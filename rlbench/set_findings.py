"""What is said of sets of actions: claims against measured rows, evaluators over the spread of counts, first ratios."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rlbench.experiments.action_sets import LOW
from rlbench.sentences import TONES, compare, interval, tone

Said = tuple[str, str]  # (sentence, tone)


@dataclass(frozen=True)
class Claim:
    """What was promised: `words`, and between which two ratios it would be true."""

    what: str
    words: str
    low: float
    high: float


CLAIMS = {
    "B1": Claim(
        "Shifting once instead of in a loop over the bits",
        "40-60 % faster: 1.4 to 1.6 times as fast, or up to 2.5 if it is time that is saved",
        1.4,
        2.5,
    ),
    "B2": Claim("Taking all states at once where their counts agree", "2 to 5 times as fast", 2, 5),
    "B3": Claim("Grouping states by their count", "2 to 3 times as fast", 2, 3),
    "B4": Claim("Computing old log-probabilities by groups instead of one by one", "3 to 10 times as fast", 3, 10),
}


def claim(name: str, rows: pd.DataFrame, places: Iterable[str]) -> Said:
    """Is a claim borne out? One sentence with every row's ratio, and the place it was measured at.

    `rows`: verdict, ratio, ratio_low, ratio_high, not_measured.
    """
    known = CLAIMS[name]
    found = [(row, place) for row, place in zip(rows.to_dict("records"), places, strict=True)]
    told = "; ".join(f"{place}: {_times(row)}, {judged(row, known.low, known.high)}" for row, place in found)
    return f"Claim {name}. {known.what} was to be {known.words}. Measured: {told or 'nothing'}.", _tone_of(rows)


def counted(number: int, what: str) -> str:
    """1 state, 16 states."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def judged(row: Mapping[str, Any], low: float, high: float) -> str:
    """A measured ratio beside a claimed range: as claimed where its interval meets the range."""
    verdict = str(row["verdict"])
    if verdict != "faster":
        return verdict
    if row["ratio_low"] > high:
        return "more than that"
    return "less than that" if row["ratio_high"] < low else "as claimed"


def _times(row: Mapping[str, Any]) -> str:
    return "no ratio" if row["ratio"] != row["ratio"] else interval(row["ratio"], row["ratio_low"], row["ratio_high"])


def _tone_of(rows: pd.DataFrame) -> str:
    tones = {TONES.get(str(verdict), "none") for verdict in rows["verdict"]}
    return tones.pop() if len(tones) == 1 else "none"


def over_spreads(rows: pd.DataFrame) -> Iterator[Said]:
    """For each spread of counts every evaluator's ratio to the baseline, the quickest first."""
    for spread, part in rows[rows["variant"] != rows["baseline"]].groupby("spread", sort=False):
        known = part.dropna(subset=["ratio"]).sort_values("ratio", ascending=False)
        head = part.iloc[0]
        kinds = "count that occurs" if head["groups"] == 1 else "different counts"
        kinds = f"{head['groups']} {kinds}, {head['filled_up']:.0%} of a padded matrix filled up"
        start = f"Counts {spread}, in {head['size']:,} states ({kinds})"
        told = ", ".join(f"{row['variant']} {_times(row)}{_unlike(row)}" for row in known.to_dict("records"))
        yield f"{start}, times as fast as {head['baseline']}: {told or 'nothing was measured'}.", _tone_of(known)


def over_sizes(rows: pd.DataFrame, unit: str = "ids", by: str = "within") -> Iterator[Said]:
    """For each value of the column `by`, every variant's ratios to the baseline over the sizes."""
    for within, part in rows[rows["variant"] != rows["baseline"]].groupby(by, sort=False):
        told = []
        for variant, line in part.dropna(subset=["ratio"]).groupby("variant", sort=False):
            each = [f"{_times(row)} at {row['size']:,} {unit}{_unlike(row)}" for row in line.to_dict("records")]
            told.append(f"{variant} {', '.join(each)}")
        start = f"{str(within)[:1].upper()}{str(within)[1:]}, times as fast as {part['baseline'].iloc[0]}"
        yield f"{start}: {'; '.join(told) or 'nothing was measured'}.", _tone_of(part.dropna(subset=["ratio"]))


def spread_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each variant, a column for each spread of counts, the ratio with its interval in each cell."""
    known = rows[rows["variant"] != rows["baseline"]]
    known = known.assign(
        cell=[_times(row) if row["ratio"] == row["ratio"] else row["verdict"] for row in known.to_dict("records")]
    )
    table = known.pivot(index="variant", columns="spread", values="cell")
    return table.loc[list(dict.fromkeys(known["variant"])), list(dict.fromkeys(known["spread"]))].rename_axis(
        columns=None
    )


def _unlike(row: Mapping[str, Any]) -> str:
    return "" if row["verdict"] == "faster" else f" ({row['verdict']})"


def ratios(rows: pd.DataFrame) -> Iterator[Said]:
    """How far from 1 the probability ratios were before any update, by precision."""
    for precision, part in rows.groupby("precision", sort=False):
        pairs = f"{len(part)} pairs of one evaluator that stored and one that was asked again"
        text = f"Before any update, in {precision}, over {pairs}, the largest |ratio - 1| is {part['error'].max():.1g}"
        alone = "" if part["alone"].all() else "NOT "
        yield f"{text}; states with one action have a log-probability of {alone}exactly zero.", "note"
        if precision == LOW and (part["error"] > 0.01).any():
            yield "So under bfloat16 the log-probabilities to store are those of the precision that updates.", "note"


def sorting(rows: pd.DataFrame) -> Iterator[Said]:
    """What sorting a minibatch by count brings to each evaluator."""
    for row in rows[rows["variant"] == "by_count"].to_dict("records"):
        what = f"An epoch with evaluate={row['evaluator']}, minibatches sorted by count,"
        yield compare(what, "one with minibatches as they come", row), tone(row)
