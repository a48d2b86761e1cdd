"""The update step alone: native beside eager PyTorch, and as a share of what one core was measured to do in products."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks import command
from benchmarks.text import aligned, interval, number
from rlbench.batch import Transitions
from rlbench.config import DQNConfig
from rlbench.experiments.light import peak_sizes, square_product, update_flops
from rlbench.machine import StealMeter, describe
from rlbench.models import mlp
from rlbench.results import Row, new_row
from rlbench.speedups.optimizer import for_loop, fused
from rlbench.stats import bootstrap_interval
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, time_paired
from rlbench.updates.eager import EagerUpdate
from rlbench.updates.native import Native

KIND = "benchmark-update-step"
EAGER, EAGER_AGAIN = "eager, Adam", "eager, Adam again"
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Update:
    """A network's widths and the rows of a minibatch. Double DQN, squared error, gradients clipped: the defaults."""

    widths: tuple[int, ...]
    batch: int

    @property
    def name(self) -> str:
        return f"{'-'.join(map(str, self.widths))}, batch {self.batch}"

    @property
    def flops(self) -> int:
        return update_flops(self.widths, self.batch)


JOBS = (Update((16, 64, 64, 3), 32), Update((64, 256, 256, 3), 256))


def minibatch(job: Update) -> Transitions:
    generator = torch.Generator().manual_seed(1)
    obs, next_obs = (torch.randn((job.batch, job.widths[0]), generator=generator) for _ in range(2))
    action = torch.randint(0, job.widths[-1], (job.batch,), generator=generator)
    terminated, truncated = ((torch.rand(job.batch, generator=generator) < 0.1).float() for _ in range(2))
    reward = torch.randn(job.batch, generator=generator)
    return Transitions(obs, action, reward, next_obs, terminated, truncated, torch.full((job.batch,), 0.99))


def updates(job: Update) -> dict[str, Callable[[], object]]:
    """A call for each side: an update of a network of its own on one minibatch. All begin with the same weights."""
    generator = torch.Generator().manual_seed(2)
    online, target = (mlp(job.widths[0], job.widths[1:-1], job.widths[-1], generator) for _ in range(2))
    config, batch = DQNConfig(batch_size=job.batch, hidden=job.widths[1:-1]), minibatch(job)

    def side(kind: Callable[..., Any], optimizer: Callable[..., Any]) -> Callable[[], object]:
        update = kind(copy.deepcopy(online), copy.deepcopy(target), config, optimizer)
        return lambda: update(batch, LEARNING_RATE)

    sides = {EAGER: (EagerUpdate, for_loop), "eager, fused Adam": (EagerUpdate, fused), "native": (Native, for_loop)}
    return {name: side(*how) for name, how in sides.items()}


def measure(job: Update, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """A row a side: its ratio to eager, and its share of the peak, of which there is a measurement in every round."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    sides, products = updates(job), {f"product {n}": square_product(n) for n in peak_sizes()}
    baseline = sides.pop(EAGER)
    paired = time_paired(
        baseline,
        {**sides, **products},
        rounds=rounds,
        min_round_s=command.QUICK_ROUND_S if quick else command.ROUND_S,
        progress=lambda done, total: on_unit(job.name),
    )
    shared = {"seeds": [1], "machine": machine, "meter": meter, "workload": job.name, "quick": quick}
    peak = np.max(
        [2 * n**3 / paired.times(f"product {n}") for n in peak_sizes()], axis=0
    )  # (rounds,) operations a second
    names = {EAGER: BASELINE, **{name: name for name in sides}, EAGER_AGAIN: BASELINE_AGAIN}
    return [new_row(KIND, side=side, **_numbers(paired, name, job, peak), **shared) for side, name in names.items()]


def _numbers(paired: Paired, name: str, job: Update, peak: np.ndarray) -> Row:
    ratio: Row = paired.ratio(BASELINE_AGAIN if name == BASELINE else name).fields()
    if name == BASELINE:
        ratio |= {"verdict": "baseline", "ratio": None, "ratio_low": None, "ratio_high": None}
    share = job.flops / paired.times(name) / peak  # (rounds,)
    low, high = bootstrap_interval(share, np.median)
    return {
        "baseline": EAGER,
        **ratio,
        "median_us": paired.median_s(name) * 1e6,
        "flops": job.flops,
        "peak_flops_per_s": float(np.median(peak)),
        "share": float(np.median(share)),
        "share_low": low,
        "share_high": high,
        "share_of_best_peak": float(job.flops / paired.median_s(name) / peak.max()),
        "rounds": paired.rounds,
        "round_times": paired.times(name).tolist(),
        "round_peaks": peak.tolist(),
    }


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        "update", "side", "time", "ratio to eager", "95 % interval", "A/A band", "share of peak", "95 % interval",
        "peak", "verdict",
    )  # fmt: skip
    return aligned(head, [_cells(row) for row in rows], {0, 1, len(head) - 1}, rows)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["workload"],
        row["side"],
        number(row["median_us"], " us"),
        number(row["ratio"], "x"),
        interval(row["ratio_low"], row["ratio_high"]),
        interval(row["aa_low"], row["aa_high"]),
        number(100 * row["share"], " %"),
        interval(100 * row["share_low"], 100 * row["share_high"]),
        number(row["peak_flops_per_s"] / 1e9, " GFLOP/s"),
        row["verdict"],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = command.parse(command.make_parser("update_step", __doc__), arguments)
    jobs = command.choose(JOBS, options.only)

    def each(job: Update, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, jobs, len(jobs) * options.rounds, each, format_rows)


if __name__ == "__main__":
    sys.exit(main())
