"""The fields of a ratio in a row, filled from a paired timing or empty with the reason."""

from __future__ import annotations

import math

from rlbench.timing import BASELINE, Paired

NAMES = ("ratio", "ratio_low", "ratio_high", "aa_low", "aa_high")


def ratio_fields(paired: Paired, name: str) -> dict[str, object]:
    """What a row says of variant `name`: medians in microseconds, ratio, interval, A/A band, verdict, every round's time."""
    return {
        "baseline_us": paired.median_s(BASELINE) * 1e6,
        "median_us": paired.median_s(name) * 1e6,
        **paired.ratio(name).fields(),
        "rounds": paired.rounds,
        "round_times": paired.times(name).tolist(),
        "not_measured": None,
    }


def no_ratio(paired: Paired | None, reason: str) -> dict[str, object]:
    """The same fields where the variant could not be timed; the baseline's time stands."""
    baseline = math.nan if paired is None else paired.median_s(BASELINE) * 1e6
    empty = dict.fromkeys(NAMES, math.nan)
    return {
        "baseline_us": baseline,
        "median_us": math.nan,
        **empty,
        "verdict": "not measured",
        "rounds": 0 if paired is None else paired.rounds,
        "round_times": [],
        "not_measured": reason,
    }
