"""Whole trainings with and without the Python loop: speed, return, and return against the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rlbench.results import Row
from rlbench.study import plan, study
from rlbench.workloads import SIMULATED, workload

MOST_STEPS = 50_000


def trainings(
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    steps: int = 0,
    device: str = "cpu",
    quick: bool = False,
    progress: bool | None = None,
) -> list[Row]:
    """Whole trainings on each env: plain, fast, and fast with the Python loop; rows of `study`, with evaluations on the way.

    Args:
        names: as `workload` knows them.
        steps: env steps of each training; 0 takes the preset's, at most MOST_STEPS, in the quick form a few thousand.
    """
    rows = []
    for name in names:
        work = workload(name)
        config = work.config(**_short(name)) if quick else work.config()
        total = steps or min(MOST_STEPS, config.total_timesteps)
        looks = {"eval_frequency": max(1, total // (4 if quick else 10)), "eval_episodes": 5 if quick else 50}
        starts = min(config.learning_starts, total // 2)
        config = config.replace(total_timesteps=total, learning_starts=starts, **looks)
        made = plan("leave_one_out", config, device=device, slots=["loop"])
        rows += study(made, work.env, eval_env=work.eval_env, env_name=name, seeds=seeds, progress=progress)
    return rows


def _short(name: str) -> Mapping[str, Any]:
    """Settings with which something is learnt within a second or two."""
    if name in SIMULATED:
        return {"total_timesteps": 2_400, "learning_starts": 400}
    own = {"total_timesteps": 2_000, "learning_starts": 300, "train_frequency": 4, "batch_size": 64}
    return {**own, "learning_rate": 2e-3, "target_network_frequency": 100}


def on_the_clock(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    """Every evaluation of every training but the controls, env by env, the baseline's first.

    Columns: env, name, seed, env_step, seconds (of training until then, compiling included), value (mean return).
    """
    made = [
        {"env": row["env"], "name": row["label"], "seed": row["seed"], "env_step": step, "value": value}
        | {"seconds": seconds + row["compile_s"]}
        for row in sorted(_records(rows), key=lambda row: (row["study"], row["rung"]))
        if row["role"] != "again" and not isinstance(row["not_measured"], str)
        for step, seconds, value in row["evaluations"]
    ]
    return pd.DataFrame(made)


def equal_returns(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    """On how many seeds a training ends with the very return that the baseline's ends with: env, label, equal, seeds."""
    records = [row for row in _records(rows) if not isinstance(row["not_measured"], str)]
    plain = {(row["study"], row["seed"]): row["mean_return"] for row in records if row["role"] == "baseline"}
    frame = pd.DataFrame(
        [
            {"env": row["env"], "label": row["label"], "equal": row["mean_return"] == plain[row["study"], row["seed"]]}
            for row in records
        ]
    )
    found = frame.groupby(["env", "label"], sort=False)["equal"].agg(["sum", "count"])
    return found.rename(columns={"sum": "equal", "count": "seeds"}).reset_index()


def _records(rows: Sequence[Row] | pd.DataFrame) -> Sequence[Mapping[str, Any]]:
    return rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
