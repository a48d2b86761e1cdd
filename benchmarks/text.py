"""Aligned text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rlbench.tables import CITABLE_ROUNDS


def aligned(
    head: Sequence[str], lines: Sequence[Sequence[str]], left: set[int], rows: Sequence[Mapping[str, Any]]
) -> str:
    """Columns side by side, those in `left` flush left; a note where `rows` are not to be cited."""
    table = [head, *lines]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    text = [
        "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in table
    ]
    text.insert(1, "  ".join("-" * w for w in widths))
    if any(row["quick"] for row in rows):
        text.append("quick: do not cite")
    elif any(row["rounds"] < CITABLE_ROUNDS for row in rows):
        text.append(f"fewer than {CITABLE_ROUNDS} rounds: do not cite")
    return "\n".join(line.rstrip() for line in text)


def number(value: float | None, unit: str = "") -> str:
    """Three digits or so, and a dash for what there is not."""
    if value is None or math.isnan(value):
        return "-"
    digits = 3 if value < 1 else 2 if value < 100 else 0
    return f"{value:,.{digits}f}{unit}"


def interval(low: float | None, high: float | None) -> str:
    return "-" if number(low) == "-" else f"[{number(low)}, {number(high)}]"
