"""What watching costs: the clock with its sampler, and the trace, each beside the same training unwatched, in turns."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks import command
from benchmarks.targets import judged
from benchmarks.text import aligned, interval
from rlbench.config import DQNConfig
from rlbench.machine import StealMeter, describe
from rlbench.profiling.session import Plan, Session
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.timing import compare
from rlbench.trainers.make import make_trainer

KIND = "benchmark-profile-overhead"
ROUNDS, QUICK_ROUNDS = 20, 5
STEPS = 3000
CLOCK_TARGET, TRACE_TARGET = 1 / 1.02, 1 / 2.0  # times as fast, watched over unwatched, at least


@dataclass(frozen=True)
class Job:
    """Choices of a DQN on CartPole, and which pass watches it."""

    choices: str
    watched: str

    @property
    def name(self) -> str:
        return f"{self.choices}, {self.watched}"

    @property
    def plan(self) -> Plan:
        return Plan(0.0, 1e9, 0.0, 0.0, 0.0) if self.watched == "clock" else Plan(0.0, 1e-9, 0.0, 1e9, 0.0)


JOBS = tuple(Job(choices, watched) for choices in ("naive", "plain") for watched in ("clock", "trace"))


def seconds(job: Job, config: DQNConfig, watch: bool) -> float:
    """Seconds of one training."""
    trainer = make_trainer(config, Choices.named(job.choices), "CartPole-v1", "cpu")
    start = time.perf_counter()
    if not watch:
        trainer.train(progress=False)
        return time.perf_counter() - start
    with Session(torch.device("cpu"), job.plan, find=False):
        start = time.perf_counter()
        trainer.train(progress=False)
        return time.perf_counter() - start


def measure(job: Job, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """One row: how many times as fast the watched training is."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    # A trace keeps every operator in memory: it watches fewer steps than a clock, as in a profile.
    steps = 600 if quick else 1200 if job.watched == "trace" else STEPS
    config = DQNConfig.preset("cartpole", total_timesteps=steps, learning_starts=200, eval_episodes=0, eval_frequency=0)
    times: dict[str, list[float]] = {"plain": [], "again": [], "watched": []}
    order = np.random.default_rng(0)
    for done in range(-1, rounds):
        for name in order.permutation(list(times)):
            spent = seconds(job, config, name == "watched")
            if done >= 0:
                times[name].append(spent)
        on_unit(job.name)
    plain, again, watched = (np.array(times[name]) for name in ("plain", "again", "watched"))
    ratio = compare(plain, watched, again)
    target = CLOCK_TARGET if job.watched == "clock" else TRACE_TARGET
    fields: dict[str, Any] = {"job": job.name, "steps": steps, "rounds": rounds, "quick": quick, "seconds": times}
    return [
        new_row(
            KIND, device="cpu", seeds=[config.seed], machine=machine, meter=meter, **fields, **judged(ratio, target)
        )
    ]


def table(rows: Sequence[Row]) -> str:
    """A line a job."""
    head = ("job", "watched takes", "95 % interval", "A/A band", "target")
    lines = []
    for row in rows:
        takes = f"{1 / row['ratio']:.3f} times"
        span, band = interval(1 / row["ratio_high"], 1 / row["ratio_low"]), interval(row["aa_low"], row["aa_high"])
        lines.append((row["job"], takes, span, band, f"{1 / row['target']:.2f}: {'met' if row['met'] else 'MISSED'}"))
    return aligned(head, lines, {0}, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    options = command.parse(
        command.make_parser("profile_overhead", __doc__), arguments, rounds=ROUNDS, quick_rounds=QUICK_ROUNDS
    )
    jobs = command.choose(JOBS, options.only)

    def work(job: Job, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, jobs, len(jobs) * (options.rounds + 1), work, table)


if __name__ == "__main__":
    sys.exit(main())
