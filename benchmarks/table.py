"""From runs to rows, and from rows to a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.rounds import AGAIN, BASELINE
from benchmarks.sb3_dqn import version
from benchmarks.sides import Run
from benchmarks.workloads import Workload
from rlbench.machine import Machine, StealMeter
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.stats import bootstrap_interval, interquartile_mean
from rlbench.timing import compare

KIND = "benchmark-sb3-dqn"
CITABLE_ROUNDS = 20


def make_rows(
    workload: Workload,
    runs: Mapping[str, Sequence[Run]],
    quick: bool = False,
    machine: Machine | None = None,
    meter: StealMeter | None = None,
) -> list[Row]:
    """A row a side: rates, the ratio to the peer (above 1: faster than it), the work done, the returns reached."""
    circumstances = {"machine": machine, "meter": meter, "quick": quick}
    return [_row(workload, runs, name, **circumstances) for name in runs]


def _row(
    workload: Workload,
    runs: Mapping[str, Sequence[Run]],
    name: str,
    machine: Machine | None,
    meter: StealMeter | None,
    quick: bool,
) -> Row:
    own = runs[name]
    means = np.array([np.mean(run.returns) for run in own])  # (rounds,)
    low, high = bootstrap_interval(means, interquartile_mean)
    return new_row(
        KIND,
        machine=machine,
        meter=meter,
        seeds=range(1, len(own) + 1),
        workload=workload.name,
        side=name,
        baseline=BASELINE,
        **_ratio(runs, name),
        median_sps=float(np.median([run.sps for run in own])),
        rounds=len(own),
        round_sps=[run.sps for run in own],
        env_steps=own[0].env_steps,
        updates=own[0].updates,
        parameters=own[0].parameters,
        return_iqm=float(interquartile_mean(means)),
        return_low=low,
        return_high=high,
        round_returns=means,
        eval_episodes=len(own[0].returns),
        quick=quick,
        config=dataclasses.asdict(workload.config),
        choices=None if name in (BASELINE, AGAIN) else Choices.named(name).in_use(workload.config),
        peer=f"stable-baselines3 {version()}",
    )


def _ratio(runs: Mapping[str, Sequence[Run]], name: str) -> Row:
    """The ratio's fields; empty numbers for the baseline itself, whose control is the row `AGAIN`."""
    if name == BASELINE:
        return {**dict.fromkeys(("ratio", "ratio_low", "ratio_high", "aa_low", "aa_high")), "verdict": "baseline"}
    base, own, again = (np.array([1.0 / run.sps for run in runs[n]]) for n in (BASELINE, name, AGAIN))  # (rounds,)
    return compare(base, own, again).fields()


def format_table(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows as an aligned text table. Every side has a line, whether it is faster or slower than the peer."""
    head = ("workload", "side", "steps/s", "ratio to sb3", "95 % interval", "A/A band", "updates", "return", "verdict")
    table = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    left = {0, 1, len(head) - 1}
    lines = [
        "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in table
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    if any(row["quick"] for row in rows):
        lines.append("quick: do not cite")
    elif any(row["rounds"] < CITABLE_ROUNDS for row in rows):
        lines.append(f"fewer than {CITABLE_ROUNDS} rounds: do not cite")
    return "\n".join(line.rstrip() for line in lines)


def _cells(row: Mapping[str, object]) -> tuple[str, ...]:
    measured = row["ratio"] is not None
    return (
        str(row["workload"]),
        str(row["side"]),
        f"{row['median_sps']:,.0f}",
        f"{row['ratio']:.2f}x" if measured else "-",
        f"[{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]" if measured else "-",
        f"[{row['aa_low']:.2f}, {row['aa_high']:.2f}]" if measured else "-",
        f"{row['updates']:,}",
        f"{row['return_iqm']:.3g} [{row['return_low']:.3g}, {row['return_high']:.3g}]",
        str(row["verdict"]),
    )
