"""Measurement rows as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

CITABLE_ROUNDS = 20


def format_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as an aligned text table for a terminal; a note says so when they are not to be cited."""
    head = ("slot", "variant", "size", "device", "a call", "ratio", "95 % interval", "A/A band", "same", "verdict")
    table = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    numeric = {2, 4, 5, 6, 7}
    lines = [
        "  ".join(c.rjust(w) if i in numeric else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in table
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    if any(row.get("quick") for row in rows):
        lines.append("quick: do not cite")
    elif any(0 < row["rounds"] < CITABLE_ROUNDS for row in rows):
        lines.append(f"fewer than {CITABLE_ROUNDS} rounds: do not cite")
    return "\n".join(line.rstrip() for line in lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    verdict = str(row["verdict"])
    why = row.get("not_measured") or row.get("error")
    if why:
        first = str(why).strip().split("\n")[0]
        verdict = first if first.endswith("on this machine") else f"{verdict}: {first}"
    same = {True: "yes", False: "NO"}.get(row["same"], "-")
    ratio = _number(row["ratio"], "x")
    interval, band = _span(row["ratio_low"], row["ratio_high"]), _span(row["aa_low"], row["aa_high"])
    names = (str(row["slot"]), str(row["variant"]), str(row["size"]), str(row["device"]))
    return (*names, _duration(row["median_us"]), ratio, interval, band, same, verdict)


def _number(value: float | None, unit: str = "") -> str:
    if value is None or math.isnan(value):
        return "-"
    if value < 0.1:
        return f"{value:.2g}{unit}"
    digits = 3 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}{unit}"


def _span(low: float | None, high: float | None) -> str:
    return "-" if _number(low) == "-" else f"[{_number(low)}, {_number(high)}]"


def _duration(microseconds: float | None) -> str:
    if microseconds is None or math.isnan(microseconds):
        return "-"
    unit, size = next(((u, s) for u, s in (("s", 1e6), ("ms", 1e3)) if microseconds >= s), ("us", 1.0))
    value = microseconds / size
    return f"{value:.3g} {unit}" if value < 100 else f"{value:,.0f} {unit}"
