"""Our DQN beside Stable-Baselines3's: rows beside the reports, a table at the end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from benchmarks import command
from benchmarks.gym_trading import PACKAGE
from benchmarks.rounds import BASELINE, run_rounds, with_controls
from benchmarks.sb3_dqn import PEER, train_sb3
from benchmarks.sides import Side, our_sides
from benchmarks.table import format_table, make_rows
from benchmarks.workloads import Workload, long_workloads, speed_workloads
from rlbench.machine import StealMeter, describe
from rlbench.results import Row

LONG_ROUNDS = 10


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.make_parser("run", __doc__, f"paired rounds (default {command.ROUNDS}; {LONG_ROUNDS} with --long)")
    parser.add_argument("--long", action="store_true", help="trainings long enough to learn, without naive")
    found = parser.parse_args(arguments)
    if found.quick and found.long:
        parser.error("--quick is for a look: it does not go with --long")
    return command.parse(parser, arguments, PEER, rounds=LONG_ROUNDS if found.long else command.ROUNDS)


def choose(options: argparse.Namespace) -> list[Workload]:
    """The workloads asked for; those whose peer is not installed are left out with a word."""
    offered = long_workloads() if options.long else speed_workloads(options.quick)
    chosen = command.choose(offered, options.only)
    able = [w for w in chosen if w.peer_env is None or command.version(PACKAGE)]
    for workload in chosen:
        if workload not in able:
            print(f"{workload.name}: left out, {PACKAGE} is not installed here", file=sys.stderr)
    return able


def sides_of(workload: Workload) -> dict[str, Side]:
    return {BASELINE: train_sb3, **our_sides(workload.naive)}


def measure(workload: Workload, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    machine, meter = describe(steal_interval_s=0), StealMeter()
    runs = run_rounds(workload, sides_of(workload), rounds, on_run=lambda name: on_unit(f"{workload.name}, {name}"))
    return make_rows(workload, runs, quick, machine, meter)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    workloads = choose(options)
    units = sum((options.rounds + 1) * len(with_controls(sides_of(workload))) for workload in workloads)
    return command.run(
        options,
        workloads,
        units,
        lambda workload, on_unit: measure(workload, options.rounds, options.quick, on_unit),
        format_table,
        "trainings",
    )


if __name__ == "__main__":
    sys.exit(main())
