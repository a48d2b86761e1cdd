"""Whole PPO on 8x8 Othello against a random opponent: ours beside sb3-contrib's MaskablePPO, which is fed by our games.

Steps a second, updates included, after the first rollout. Equal are games, opponent, number of games, steps of a rollout,
minibatches, epochs, step size, width, total of samples. `MFLOP a sample` are the operations of matrix products, for one forward
pass when acting and the updates of all epochs: ours scores every legal action, theirs 65 squares.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from benchmarks import command
from benchmarks.sb3_games import PEER, make_model, peer_counts, train_sb3
from benchmarks.targets import cores, judged, target_cell, unjudged
from benchmarks.text import aligned, interval, number
from benchmarks.trainings import (
    Side,
    Training,
    again,
    in_rounds,
    in_use,
    mean_actions,
    numbers_of,
    ours,
    seconds_of,
    settings,
)
from rlbench.config import PPOConfig
from rlbench.envs.othello import Othello
from rlbench.machine import StealMeter, describe
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.timing import compare
from rlbench.trainers.ppo import PPO

KIND = "benchmark-sb3-ppo"
SB3, LONG_ROUNDS = "sb3", 10
TARGETS = {"fast": 5.0}
GAME = Othello(8, opponent="random")


@dataclass(frozen=True)
class Job:
    name: str
    config: PPOConfig
    games: int  # that the final greedy policy plays against a random opponent


def jobs(quick: bool = False, long: bool = False) -> list[Job]:
    rollouts, games = (3, 20) if quick else (40, 200) if long else (5, 100)
    config = settings(
        rollouts, num_envs=64, num_steps=64, batch_size=256, update_epochs=4, learning_rate=1e-3, hidden=(64, 64),
        eval_opponent="random",
    )  # fmt: skip
    return [Job(f"8x8 against random, {config.total_timesteps:,} steps", config, games)]


def sides_of(job: Job) -> dict[str, Side]:
    return {
        SB3: partial(train_sb3, GAME, games=job.games),
        "plain": ours(Choices.plain(), GAME, games=job.games),
        "fast": ours(Choices.fast(), GAME, games=job.games),
    }


@cache
def actions() -> float:
    return mean_actions(GAME)


def counts_of(side: str, config: PPOConfig) -> Row:
    """Parameters and operations of a side's policy; `flops_a_sample` for one forward pass and the updates of all epochs."""
    if side == SB3:
        row: Row = dict(peer_counts(make_model(GAME, config)))
    else:
        told = PPO(config, Choices.plain(), GAME).describe_network()
        scored = round(told["action_flops"] * actions())
        update = told["update_flops"] // config.batch_size + 3 * scored
        row = {"parameters": told["parameters"], "forward_flops": told["forward_flops"] + scored}
        row["sample_update_flops"] = update
    row["flops_a_sample"] = row["forward_flops"] + config.update_epochs * row["sample_update_flops"]
    return row


def measure(job: Job, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    machine, meter = describe(steal_interval_s=0), StealMeter()
    runs = in_rounds(job.name, job.config, sides_of(job), SB3, rounds, lambda side: on_unit(f"{job.name}, {side}"))
    shared = {"machine": machine, "meter": meter, "quick": quick, "workload": job.name, "cores": cores()}
    return [
        new_row(KIND, seeds=range(1, rounds + 1), side=side, **_numbers(side, runs, job.config), **shared)
        for side in runs
    ]


def _numbers(side: str, runs: Mapping[str, Sequence[Training]], config: PPOConfig) -> Row:
    """`ratio` is the peer's time a step over the side's."""
    peer, own, control = (seconds_of(runs[name]) for name in (SB3, side, again(SB3)))
    ratio = unjudged("baseline") if side == SB3 else judged(compare(peer, own, control), TARGETS.get(side))
    base = SB3 if side == again(SB3) else side
    return {
        "baseline": SB3,
        "peer": f"{PEER} {command.version(PEER)}",
        "config": dataclasses.asdict(config),
        "choices": None if base == SB3 else in_use(Choices.named(side), config, GAME),
        "mean_actions": actions(),
        **ratio,
        **counts_of(base, config),
        **numbers_of(runs[side]),
    }


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        "PPO", "side", "steps/s", "ratio to sb3", "95 % interval", "A/A band", "target", "MFLOP a sample", "updates", "return",
        "verdict",
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
        number(row["flops_a_sample"] / 1e6),
        f"{row['updates']:,}",
        f"{row['return_iqm']:.3g} [{row['return_low']:.3g}, {row['return_high']:.3g}]",
        row["verdict"],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    described = f"paired rounds (default {command.ROUNDS}; {LONG_ROUNDS} with --long)"
    parser = command.make_parser("sb3_ppo", __doc__, described)
    parser.add_argument("--long", action="store_true", help="trainings long enough to learn")
    found = parser.parse_args(arguments)
    if found.quick and found.long:
        parser.error("--quick is for a look: it does not go with --long")
    options = command.parse(parser, arguments, PEER, rounds=LONG_ROUNDS if found.long else command.ROUNDS)
    chosen = command.choose(jobs(options.quick, options.long), options.only)
    units = sum((options.rounds + 1) * (len(sides_of(job)) + 1) for job in chosen)

    def each(job: Job, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, chosen, units, each, format_rows, "trainings")


if __name__ == "__main__":
    sys.exit(main())
