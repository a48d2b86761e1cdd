"""Sentences from curves of time per unit over size: where a variant pays, where it stops, and where more is no cheaper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from rlbench.sentences import ELSEWHERE, interval, seconds

COLUMNS = (
    "size", "variant", "unit_ns", "unit_ns_low", "unit_ns_high", "ratio", "ratio_low", "ratio_high", "aa_low", "aa_high",
    "same", "verdict",
)  # fmt: skip
PAYS = "faster"


def variants(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(slot=variant, its rows by size) for each curve's variants but the baseline. `rows`: as `scaling_point.trace`."""
    others = rows[rows["variant"] != rows["baseline"]]
    for (_, slot, variant), part in others.groupby(["curve", "slot", "variant"], sort=False):
        yield f"{slot}={variant}", part.sort_values("size")


def where(part: pd.DataFrame) -> str:
    """At which sizes one variant pays: it is faster, by an interval that excludes 1 and by more than the A/A band."""
    part = part.dropna(subset=["ratio"])
    sizes, name = [int(size) for size in part["size"]], part["size_name"].iloc[0]
    flags = [verdict == PAYS for verdict in part["verdict"]]
    paying = [size for size, pays in zip(sizes, flags, strict=True) if pays]
    if not paying or all(flags):
        span = f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 1 else f"{sizes[0]:,} alone"
        return f"at {'every' if paying else 'no'} {name} measured ({span})"
    first, last = sizes.index(paying[0]), sizes.index(paying[-1])
    if not all(flags[first : last + 1]):
        others = [size for size in sizes if size not in paying]
        return f"at {name} {_numbers(paying)}, but not at {_numbers(others)}"
    if last == len(sizes) - 1:
        return f"from {name} {paying[0]:,} on"
    if first == 0:
        return f"up to {name} {paying[-1]:,}"
    return f"from {name} {paying[0]:,} to {paying[-1]:,}" if len(paying) > 1 else f"at {name} {paying[0]:,} alone"


def sentence(name: str, part: pd.DataFrame) -> tuple[str, str]:
    """(sentence, tone) on a variant that was measured at one size or more, with ratios where it begins and stops to pay."""
    records = part.dropna(subset=["ratio"]).to_dict("records")
    flags = [row["verdict"] == PAYS for row in records]
    said = [f"{name} against {records[0]['baseline']} pays {where(part)}"]
    if any(flags):
        first, last = flags.index(True), len(flags) - 1 - flags[::-1].index(True)
        said += [f"at {records[first - 1]['size']:,} it is {_ratio(records[first - 1])}"] if first else []
        stop = records[last + 1] if last + 1 < len(records) else None
        said += [f"it stops paying at {stop['size']:,}, where it is {_ratio(stop)}"] if stop else []
    best = max(records, key=lambda row: row["ratio"])
    said.append(f"at best, at {best['size']:,}, it is {_ratio(best)}")
    slower = all(row["verdict"] == "slower" for row in records)
    return f"{'; '.join(said)}.", "faster" if all(flags) else "note" if any(flags) else "slower" if slower else "none"


def left_out(rows: pd.DataFrame) -> Iterator[str]:
    """What has no time, with the reason: variants over whole curves, then sizes of variants that have times at others."""
    never: dict[tuple[str, str], list[str]] = {}
    for name, part in variants(rows):
        if part["unit_ns"].isna().all():
            never.setdefault((name, _why(part.iloc[0])), []).append(part["size_name"].iloc[0])
    for (name, reason), over in never.items():
        yield f"{name} over {_listed(over)}: {reason}."
    for _, curve in rows.groupby("curve", sort=False):
        timed = set(curve.loc[curve["unit_ns"].notna(), "variant"])
        gaps = curve[curve["unit_ns"].isna() & curve["variant"].isin(timed)]
        for size, part in gaps.groupby("size", sort=False):
            row = part.iloc[0]
            yield f"{row['size_name']} {size:,} with {', '.join(part['variant'])}: {_why(row)}."


def compiling(rows: pd.DataFrame) -> Iterator[str]:
    """How many seconds a variant of a curve spent on compilation, if any."""
    for name, part in variants(rows):
        spent = part["compile_s"] if "compile_s" in part else part["unit_ns"] * 0
        if spent.sum() > 0:
            total = f"{seconds(spent.sum())} of compilation, {seconds(spent.max())} at most for one size"
            yield f"{name} over {part['size_name'].iloc[0]} took {total}; no time above has a share of it."


def growth(rows: pd.DataFrame) -> Iterator[str]:
    """For each curve: beyond which size one unit gets no cheaper, for each variant."""
    for _, curve in rows.dropna(subset=["unit_ns"]).groupby("curve", sort=False):
        timed = curve[~curve["extrapolated"].eq(True)] if "extrapolated" in curve else curve
        row, said = curve.iloc[0], [_beyond(str(name), part) for name, part in timed.groupby("variant", sort=False)]
        yield f"Time per {row['unit']} over {row['size_name']}, sizes timed one after another: {'; '.join(said)}."


def _beyond(name: str, part: pd.DataFrame) -> str:
    part = part.sort_values("size")
    size, last = cheapest(part), part.iloc[-1]
    end = f"{seconds(last['unit_ns'] * 1e-9)} at {last['size']:,}"
    if size == last["size"]:
        return f"{name} is cheapest at the largest ({end})"
    least = float(part.loc[part["size"] == size, "unit_ns"].iloc[0])
    return f"{name} is no cheaper beyond {size:,} ({seconds(least * 1e-9)} there, {end})"


def cheapest(part: pd.DataFrame) -> int:
    """The smallest size whose time per unit lies within the spread of the least one: lower quartile up to its upper one."""
    least = part.loc[part["unit_ns"].idxmin()]
    return int(part.loc[part["unit_ns_low"] <= least["unit_ns_high"], "size"].min())


def answer(rows: pd.DataFrame) -> tuple[str, str]:
    """(sentence, tone): where each variant pays, in short; those that could not be measured are left to `sentence`."""
    places = [(name, part) for name, part in variants(rows) if part["ratio"].notna().any()]
    if not places:
        return "No speed-up could be measured over sizes on this machine.", "not measured"
    everywhere = all((part.dropna(subset=["ratio"])["verdict"] == PAYS).all() for _, part in places)
    said = [
        f"{name} {_listed([where(part) for other, part in places if other == name])}"
        for name in dict.fromkeys(name for name, _ in places)
    ]
    return f"These pay here, against the plain variant: {'; '.join(said)}.", "faster" if everywhere else "note"


def findings(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """(sentence, tone): each variant, what was left out, and what larger sizes do to time per unit."""
    for name, part in variants(rows):
        if part["ratio"].notna().any():
            yield sentence(name, part)
    for text in compiling(rows):
        yield text, "note"
    for text in left_out(rows):
        yield f"Left out: {text}", "not measured"
    for text in growth(rows):
        yield text, "note"


def _ratio(row: Mapping[str, Any]) -> str:
    ratio = interval(row["ratio"], row["ratio_low"], row["ratio_high"])
    if row["verdict"] in ("faster", "slower"):
        return f"{ratio} times as fast"
    band = f"the same code timed twice reads {row['aa_low']:.2f} to {row['aa_high']:.2f}"
    return f"{ratio} times as fast, {row['verdict']} ({band})"


def _why(row: Mapping[str, Any]) -> str:
    """Why a row has no time."""
    reason = row["not_measured"]
    if isinstance(reason, str):
        return f"not measured on this machine ({reason.removesuffix(ELSEWHERE)})"
    return str(row["verdict"])


def _listed(words: list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _numbers(sizes: list[int]) -> str:
    return _listed([f"{size:,}" for size in sizes])
