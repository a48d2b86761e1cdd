"""From runs to rows, and from rows to a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.command import version
from benchmarks.gym_trading import PACKAGE
from benchmarks.rounds import AGAIN, BASELINE, OWN_BASELINE
from benchmarks.sb3_dqn import PEER
from benchmarks.sides import Run
from benchmarks.text import aligned, interval, number
from benchmarks.workloads import Workload
from rlbench.envs.source import env_source
from rlbench.machine import Machine, StealMeter
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.stats import bootstrap_interval, interquartile_mean
from rlbench.timing import compare

KIND = "benchmark-sb3-dqn"
NAMES = ("ratio", "ratio_low", "ratio_high", "aa_low", "aa_high", "verdict")


def make_rows(
    workload: Workload,
    runs: Mapping[str, Sequence[Run]],
    quick: bool = False,
    machine: Machine | None = None,
    meter: StealMeter | None = None,
) -> list[Row]:
    """A row a side: rates, ratios to the peer and to plain() (above 1: faster), the work done, the returns reached."""
    peer = f"{PEER} {version(PEER)}"
    if workload.peer_env is not None:
        peer += f" on {PACKAGE} {version(PACKAGE)}"
    shared = {"machine": machine, "meter": meter, "quick": quick, "workload": workload.name, "peer": peer}
    source = env_source(workload.make_env)
    return [
        new_row(
            KIND,
            seeds=range(1, len(own) + 1),
            side=name,
            baseline=BASELINE,
            config=dataclasses.asdict(workload.config),
            choices=_choices(AGAIN.get(name, name), workload, source),
            **_ratio(runs, BASELINE, "sb3 again", name),
            **{f"plain_{n}": v for n, v in _ratio(runs, OWN_BASELINE, "plain again", name).items()},
            **_numbers(own),
            **shared,
        )
        for name, own in runs.items()
    ]


def _choices(side: str, workload: Workload, source: Any) -> dict[str, str] | None:
    """What was in use there; None for the peer."""
    if side == BASELINE:
        return None
    usable = Choices.named(side).usable(workload.config, "cpu", source)
    return usable.in_use(workload.config, "cpu", source)


def _numbers(own: Sequence[Run]) -> Row:
    means = np.array([np.mean(run.returns) for run in own])  # (rounds,)
    low, high = bootstrap_interval(means, interquartile_mean)
    return {
        "median_sps": float(np.median([run.sps for run in own])),
        "rounds": len(own),
        "round_sps": [run.sps for run in own],
        "env_steps": own[0].env_steps,
        "updates": own[0].updates,
        "parameters": own[0].parameters,
        "return_iqm": float(interquartile_mean(means)),
        "return_low": low,
        "return_high": high,
        "round_returns": means,
        "eval_episodes": len(own[0].returns),
    }


def _ratio(runs: Mapping[str, Sequence[Run]], baseline: str, again: str, name: str) -> Row:
    """The fields of a ratio; empty numbers for the baseline itself, whose control is the row `again`."""
    if name == baseline or again not in runs:
        return {**dict.fromkeys(NAMES), "verdict": "baseline" if name == baseline else None}
    base, own, control = (np.array([1.0 / run.sps for run in runs[n]]) for n in (baseline, name, again))  # (rounds,)
    return compare(base, own, control).fields()


def format_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as an aligned text table. Every side has a line, whether it is faster or slower than the peer."""
    head = (
        "workload", "side", "steps/s", "ratio to sb3", "95 % interval", "A/A band", "ratio to plain", "95 % interval",
        "updates", "return", "verdict",
    )  # fmt: skip
    return aligned(head, [_cells(row) for row in rows], {0, 1, len(head) - 1}, rows)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(row["workload"]),
        str(row["side"]),
        f"{row['median_sps']:,.0f}",
        number(row["ratio"], "x"),
        interval(row["ratio_low"], row["ratio_high"]),
        interval(row["aa_low"], row["aa_high"]),
        number(row["plain_ratio"], "x"),
        interval(row["plain_ratio_low"], row["plain_ratio_high"]),
        f"{row['updates']:,}",
        f"{row['return_iqm']:.3g} [{row['return_low']:.3g}, {row['return_high']:.3g}]",
        str(row["verdict"]),
    )
