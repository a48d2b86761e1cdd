"""Ratios with one control for all of them, and what is to be reached."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from rlbench.results import Row
from rlbench.timing import Ratio, compare

NOT_SLOWER = "not slower"  # a target: faster, or no difference seen


def times_as_fast(own: np.ndarray, own_again: np.ndarray, other: np.ndarray) -> Ratio:
    """The other side's time over ours, from three columns of times of the same rounds. # (rounds,) each

    The control is our own time twice: for it the other side, which may be a hundred times as slow, need not be timed again.
    """
    return compare(other, own, other * own_again / own)


def judged(ratio: Ratio, target: float | str | None) -> Row:
    """A ratio's fields, the target (a least ratio, or `NOT_SLOWER`, or None), and whether it was met; None where not known."""
    met: bool | None = None
    if target is not None and ratio.verdict != "too few rounds":
        met = ratio.verdict in ("faster", "no difference seen") if target == NOT_SLOWER else ratio.ratio >= target
    return {**ratio.fields(), "target": target, "met": met}


def unjudged(verdict: str | None = None) -> Row:
    """The same fields of a side that there is no ratio to."""
    names = ("ratio", "ratio_low", "ratio_high", "aa_low", "aa_high")
    return {**dict.fromkeys(names), "verdict": verdict, "target": None, "met": None}


def target_cell(row: Mapping[str, Any]) -> str:
    """The target and whether it was met, as a cell of a table."""
    target = row["target"]
    if target is None:
        return "-"
    wanted = target if target == NOT_SLOWER else f"at least {target:g}x"
    return f"{wanted}: {'too few rounds' if row['met'] is None else 'met' if row['met'] else 'MISSED'}"


def cores() -> int | None:
    """The processor cores that this process may use; None where the system does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
