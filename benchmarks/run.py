"""Run the comparison with Stable-Baselines3's DQN: rows beside the reports, a table at the end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch

if not __package__:  # `python benchmarks/run.py` puts this folder on the path, and not the one above it
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.rounds import BASELINE, run_rounds
from benchmarks.sb3_dqn import train_sb3, version
from benchmarks.sides import our_sides
from benchmarks.table import format_table, make_rows
from benchmarks.workloads import Workload, long_workloads, speed_workloads
from rlbench.machine import StealMeter, describe
from rlbench.progress import Progress
from rlbench.results import Row, append, record

ROUNDS, QUICK_ROUNDS, LONG_ROUNDS = 20, 5, 10


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--rounds", type=int, help=f"paired rounds (default {ROUNDS}; {LONG_ROUNDS} with --long)")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains TEXT")
    parser.add_argument("--long", action="store_true", help="trainings long enough to learn, without naive")
    parser.add_argument("--quick", action="store_true", help="few short rounds, stamped as not to be cited")
    parser.add_argument("--record", action="store_true", help="also write reports/measurements/<machine>/…json")
    options = parser.parse_args(arguments)
    if options.quick and (options.long or options.record):
        parser.error("--quick is for a look: it goes with neither --long nor --record")
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: at least 1 is needed")
    if version() is None:
        parser.error("stable-baselines3 is not installed here: pip install -r benchmarks/requirements.txt")
    return options


def choose(options: argparse.Namespace) -> list[Workload]:
    offered = long_workloads() if options.long else speed_workloads(options.quick)
    chosen = [workload for workload in offered if options.only.lower() in workload.name.lower()]
    if not chosen:
        names = "; ".join(workload.name for workload in offered)
        raise SystemExit(f"--only {options.only!r} matches none of the workloads: {names}")
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write rows after each workload, print the table."""
    options = parse(arguments)
    workloads = choose(options)
    torch.set_num_threads(1)  # both sides: on networks this small more threads wait more than they work
    rounds = options.rounds or (LONG_ROUNDS if options.long else QUICK_ROUNDS if options.quick else ROUNDS)
    sides = {BASELINE: train_sb3, **our_sides()}
    if options.long:
        del sides["naive"]
    machine = describe()
    print(machine.card(), file=sys.stderr)
    path = Path("reports") / f"benchmark-{datetime.now(UTC):%Y%m%dT%H%M%SZ}" / "rows.jsonl"
    rows: list[Row] = []
    with Progress(len(workloads) * (rounds + 1) * (len(sides) + 1), "benchmark", "trainings") as progress:
        for workload in workloads:
            meter = StealMeter()
            note = workload.name
            runs = run_rounds(
                workload, sides, rounds, on_run=lambda name, note=note: progress.advance(1, f"{note}, {name}")
            )
            found = make_rows(workload, runs, options.quick, machine, meter)
            append(path, found)
            rows += found
    print(format_table(rows))
    print(f"rows: {path}")
    if options.record:
        print(f"recorded: {record(rows, machine.slug)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
