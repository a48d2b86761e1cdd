"""Whole PPO on 8x8 Othello in self-play: fast() beside plain(), and beside the source's "before" and "after".

"Before" is naive(). "After" is naive() with what the source then makes faster: bits by shifts, states evaluated at once where
all have as many actions and else one by one, log-probabilities in groups; on CUDA pinned transfers and TF32, too. In "after, all
else plain" games, minibatches, advantages and metrics, which the source does not speak of, are plain()'s, so that only what it
left slow is slow. Steps a second, updates included, after the first rollout. A ratio is a side's time over that of fast().
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import command
from benchmarks.targets import cores, judged, target_cell, times_as_fast, unjudged
from benchmarks.text import aligned, interval, number
from benchmarks.trainings import AGAIN, Side, Training, again, in_rounds, in_use, numbers_of, ours, seconds_of, settings
from rlbench.config import PPOConfig
from rlbench.envs.othello import Othello
from rlbench.machine import StealMeter, describe, resolve_device
from rlbench.results import Row, new_row
from rlbench.speedups import Choices

KIND = "benchmark-ppo-run"
FAST, PLAIN, BEFORE, AFTER, AFTER_ELSE_PLAIN = "fast", "plain", "naive", "after", "after, all else plain"
GAME = Othello(8)


@dataclass(frozen=True)
class Job:
    """`targets`: how many times as fast as that side fast() is to be, at least."""

    width: int
    sides: tuple[str, ...]
    targets: Mapping[str, float] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def name(self) -> str:
        return f"hidden {self.width}"

    @property
    def config(self) -> PPOConfig:
        """A rollout of some eight games' worth, in minibatches as the source has them; a second rollout is timed."""
        return settings(
            2, num_envs=16, num_steps=32, batch_size=128, update_epochs=4, learning_rate=1e-3, hidden=(self.width,) * 2
        )


def jobs(device: str = "cpu") -> list[Job]:
    afters = (FAST, PLAIN, AFTER, AFTER_ELSE_PLAIN)
    return [
        Job(64, (FAST, PLAIN, BEFORE), {BEFORE: 20.0}, device),
        Job(128, afters, {AFTER: 2.0, AFTER_ELSE_PLAIN: 2.0}, device),
        Job(512, afters, {}, device),
    ]


def choices_of(side: str, device: str = "cpu") -> Choices:
    """The choices of a side, or of its repetition."""
    side = side.removesuffix(AGAIN)
    if side not in (AFTER, AFTER_ELSE_PLAIN):
        return Choices.named(side, device)
    made = {"action_encoding": "shift", "evaluate": "same_count_or_loop", "old_log_probs": "recompute_grouped"}
    if resolve_device(device).type == "cuda":
        made |= {"precision": "tf32"}
    if side == AFTER:
        return Choices.naive().replace(**made, **({"transfer": "pinned"} if "precision" in made else {}))
    return Choices.plain(device).replace(**made)


def sides_of(job: Job) -> dict[str, Side]:
    return {side: ours(choices_of(side, job.device), GAME, job.device) for side in job.sides}


def measure(job: Job, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    machine, meter = describe(steal_interval_s=0), StealMeter()
    runs = in_rounds(job.name, job.config, sides_of(job), FAST, rounds, lambda side: on_unit(f"{job.name}, {side}"))
    shared = {"machine": machine, "meter": meter, "device": job.device, "seeds": range(1, rounds + 1)}
    return [new_row(KIND, side=side, quick=quick, **_numbers(side, runs, job), **shared) for side in runs]


def _numbers(side: str, runs: Mapping[str, Sequence[Training]], job: Job) -> Row:
    """`ratio` is the side's time a step over that of fast(): above 1, fast() is faster."""
    own, control, other = (seconds_of(runs[name]) for name in (FAST, again(FAST), side))
    ratio = unjudged("what is compared")
    if side != FAST:
        ratio = judged(times_as_fast(own, control, other), job.targets.get(side))
    return {
        "workload": job.name,
        "baseline": FAST,
        "cores": cores(),
        "config": dataclasses.asdict(job.config),
        "choices": in_use(choices_of(side, job.device), job.config, GAME, job.device),
        **ratio,
        **numbers_of(runs[side]),
    }


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        "PPO, self-play", "side", "steps/s", "fast, times as fast", "95 % interval", "A/A band", "target", "updates",
        "verdict on fast",
    )  # fmt: skip
    return aligned(head, [_cells(row) for row in rows], {0, 1, 6, len(head) - 1}, rows)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["workload"],
        row["side"],
        number(row["median_sps"]),
        number(row["ratio"], "x"),
        interval(row["ratio_low"], row["ratio_high"]),
        interval(row["aa_low"], row["aa_high"]),
        target_cell(row),
        f"{row['updates']:,}",
        row["verdict"],
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.make_parser("ppo_run", __doc__)
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:N")
    return command.parse(parser, arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    chosen = command.choose(jobs(options.device), options.only)
    units = sum((options.rounds + 1) * (len(job.sides) + 1) for job in chosen)

    def each(job: Job, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, chosen, units, each, format_rows, "trainings")


if __name__ == "__main__":
    sys.exit(main())
