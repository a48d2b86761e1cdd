"""Rows of a study in sum: speed against the baseline in pairs, return, and whether a variant learns the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rlbench.stats import CITABLE_SEEDS, bootstrap_interval, interquartile_mean, non_inferior
from rlbench.timing import compare

PROJECTED = {"100k": 100_000, "1m": 1_000_000}
STATED_SHARE = 0.9  # of the way from random to the baseline's final return, where no return is stated
QUICK = "quick: do not cite"


def summarise(rows: Iterable[Mapping[str, Any]] | pd.DataFrame, *, to_return: float | None = None) -> pd.DataFrame:
    """One row a study and label, the baseline first.

    Columns, all ratios baseline over variant in time, so that above 1 is faster:
        sps (median), sps_ratio with _low and _high (median over seeds of the ratio within a seed, 95 % bootstrap),
        aa_low, aa_high (what the baseline trained twice shows), speed ("faster", "slower", "no difference seen", "too
        few seeds");
        return_iqm with _low and _high (interquartile mean over seeds of the final policy's return, bootstrap over
        seeds), return_difference with _low and _high, learns (the verdict of non-inferiority), random_return;
        compile_s, projected_total_ratio_100k and _1m with _low and _high: ratios of compile_s + steps / sps, computed
        from the measured compile_s and sps, not measured themselves;
        to_return (the return asked for; where left out, 90 % of the way from random to the baseline's),
        seconds_to_return (median over the seeds that reached it in an evaluation during training), reached ("2 of 3"),
        to_return_ratio (where both reached it on all seeds);
        seeds, stamp ("quick: do not cite" below ten), not_measured.

    Args:
        rows: of `study`, or a frame of `results.load`; rows of other kinds are passed over.
        to_return: the return for wall-clock to a return; it needs `eval_frequency` above 0.
    """
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame([_top(row) for row in rows])
    if frame.empty or "kind" not in frame or not (frame["kind"] == "training").any():
        raise ValueError("there are no rows of kind 'training' to summarise; `study` and `rlbench study` write them.")
    frame = frame[frame["kind"] == "training"]
    made = [_study(group, to_return) for _, group in frame.groupby("study", sort=False)]
    return pd.DataFrame([row for group in made for row in group])


def _top(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row that are not dicts."""
    return {name: value for name, value in row.items() if not isinstance(value, Mapping)}


def _study(group: pd.DataFrame, to_return: float | None) -> list[dict[str, Any]]:
    """The summary rows of one study."""
    trained = group[group["not_measured"].isna()]
    base = _seeds(trained[trained["role"] == "baseline"])
    again = _seeds(trained[trained["role"] == "again"])
    head = {name: group[name].iloc[0] for name in ("study", "mode", "machine", "device")}
    goal = _goal(base, to_return)
    out = []
    in_order = group.assign(control=group["role"] == "again").sort_values(["rung", "control"], kind="stable")
    for label in dict.fromkeys(in_order["label"]):
        mine = group[group["label"] == label]
        reason = mine["not_measured"].iloc[0]
        row = {**head, "env": _first(trained, "env"), "label": label, "seeds": 0, "not_measured": None}
        if isinstance(reason, str):
            out.append({**row, "not_measured": reason})
            continue
        own = _seeds(mine)
        shared = base.index.intersection(own.index).intersection(again.index)
        row["seeds"] = len(shared)
        row["stamp"] = QUICK if len(shared) < CITABLE_SEEDS else ""
        parts = [part.loc[shared] for part in (base, own, again)]
        out.append({**row, **_speed(*parts), **_learning(parts[0], parts[1]), **_to_goal(parts[0], parts[1], goal)})
    return out


def _seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a seed, by seed."""
    return rows.drop_duplicates("seed").set_index("seed").sort_index()


def _first(frame: pd.DataFrame, name: str) -> Any:
    return frame[name].iloc[0] if len(frame) else None


def _speed(base: pd.DataFrame, own: pd.DataFrame, again: pd.DataFrame) -> dict[str, Any]:
    def seconds(frame: pd.DataFrame, steps: int | None = None) -> np.ndarray:
        """Seconds an env step, or projected seconds of a training of so many steps."""
        step_s = 1.0 / frame["sps"].to_numpy(float)
        return step_s if steps is None else frame["compile_s"].to_numpy(float) + steps * step_s

    ratio = compare(seconds(base), seconds(own), seconds(again))
    numbers = {
        "sps": float(own["sps"].astype(float).median()),
        "sps_ratio": ratio.ratio,
        "sps_ratio_low": ratio.low,
        "sps_ratio_high": ratio.high,
        "aa_low": ratio.aa_low,
        "aa_high": ratio.aa_high,
        "speed": "baseline" if base.equals(own) else ratio.verdict.replace("rounds", "seeds"),
        "train_s": float(own["train_s"].astype(float).median()),
        "total_s": float(own["total_s"].astype(float).median()),
        "compile_s": float(own["compile_s"].astype(float).median()),
    }
    for name, steps in PROJECTED.items():
        total = compare(*(seconds(frame, steps) for frame in (base, own, again)))
        column = f"projected_total_ratio_{name}"
        numbers |= {column: total.ratio, f"{column}_low": total.low, f"{column}_high": total.high}
    return numbers


def _learning(base: pd.DataFrame, own: pd.DataFrame) -> dict[str, Any]:
    names = ("return_iqm", "return_low", "return_high", "return_difference")
    numbers: dict[str, Any] = dict.fromkeys((*names, "return_difference_low", "return_difference_high"), np.nan)
    floor = _first(base, "random_return")
    returns, plain = own["mean_return"].to_numpy(float), base["mean_return"].to_numpy(float)
    if not len(own) or np.isnan(returns).any() or np.isnan(plain).any():
        return {**numbers, "random_return": floor, "learns": "not evaluated"}
    low, high = bootstrap_interval(returns, interquartile_mean)
    judged = non_inferior(plain, returns, float(floor))
    numbers = dict(zip(names, (judged.other, low, high, judged.difference), strict=True))
    numbers |= {"return_difference_low": judged.low, "return_difference_high": judged.high, "random_return": floor}
    return {**numbers, "learns": _verdict(base, own, judged.verdict)}


def _verdict(base: pd.DataFrame, own: pd.DataFrame, verdict: str) -> str:
    """Equal weights on every seed say more than any test of returns."""
    if base.equals(own):
        return "baseline"
    if (base["weights_sha256"] == own["weights_sha256"]).all():
        return "learns the same: equal weights, bit for bit" + ("" if len(own) >= CITABLE_SEEDS else f" ({QUICK})")
    return verdict


def _goal(base: pd.DataFrame, to_return: float | None) -> float | None:
    """The return to reach; None where nothing was evaluated while training."""
    if not len(base) or base["evaluations"].map(len).max() < 2:
        return None
    if to_return is not None:
        return float(to_return)
    returns = base["mean_return"].to_numpy(float)
    floor = float(_first(base, "random_return"))
    return floor + STATED_SHARE * (float(interquartile_mean(returns)) - floor)


def _to_goal(base: pd.DataFrame, own: pd.DataFrame, goal: float | None) -> dict[str, Any]:
    if goal is None:
        return {"to_return": np.nan, "seconds_to_return": np.nan, "reached": "", "to_return_ratio": np.nan}
    mine, plain = (np.array([_seconds_to(each, goal) for each in frame["evaluations"]]) for frame in (own, base))
    reached = ~np.isnan(mine)
    every = len(mine) and reached.all() and not np.isnan(plain).any()
    return {
        "to_return": goal,
        "seconds_to_return": float(np.median(mine[reached])) if reached.any() else np.nan,
        "reached": f"{int(reached.sum())} of {len(mine)}",
        "to_return_ratio": float(np.exp(np.median(np.log(plain / mine)))) if every else np.nan,
    }


def _seconds_to(evaluations: list[list[float]], goal: float) -> float:
    """Seconds of training at the first evaluation that reached the goal; NaN where none did."""
    return next((seconds for _, seconds, value in evaluations if value >= goal), float("nan"))
