"""What the benchmarks have in common: options, rows beside the reports as they are found, a table at the end, the record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from rlbench.machine import describe
from rlbench.progress import Progress
from rlbench.results import Row, append, record

ROUNDS, QUICK_ROUNDS = 20, 5
ROUND_S, QUICK_ROUND_S = 0.02, 0.002  # seconds that a timing of a call lasts at least

Measure = Callable[[Any, Callable[[str], None]], list[Row]]  # (job, called after each unit of it with a note) -> rows


def version(package: str) -> str | None:
    """Version of a peer, None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def make_parser(
    module: str, doc: str | None, rounds: str = f"paired rounds (default {ROUNDS})"
) -> argparse.ArgumentParser:
    """A parser of the options that all of them have."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=doc)
    parser.add_argument("--rounds", type=int, help=rounds)
    parser.add_argument("--only", default="", metavar="TEXT", help="what has TEXT in its name")
    parser.add_argument("--quick", action="store_true", help="few short rounds, stamped as not to be cited")
    parser.add_argument("--record", action="store_true", help="also write reports/measurements/<machine>/…json")
    return parser


def parse(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    *peers: str,
    rounds: int = ROUNDS,
    quick_rounds: int = QUICK_ROUNDS,
) -> argparse.Namespace:
    """The options, with `rounds` filled in; the parser's error for what cannot be done, and where a peer is missing."""
    options = parser.parse_args(arguments)
    if options.quick and options.record:
        parser.error("--quick is for a look: it does not go with --record")
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: at least 1 is needed")
    missing = [peer for peer in peers if version(peer) is None]
    if missing:
        parser.error(f"{', '.join(missing)} not installed here: pip install -r benchmarks/requirements.txt")
    if options.rounds is None:
        options.rounds = quick_rounds if options.quick else rounds
    return options


def choose(jobs: Sequence[Any], only: str) -> list[Any]:
    """The jobs whose name contains `only`."""
    chosen = [job for job in jobs if only.lower() in job.name.lower()]
    if not chosen:
        raise SystemExit(f"--only {only!r} matches none of: {'; '.join(job.name for job in jobs)}")
    return chosen


def run(
    options: argparse.Namespace,
    jobs: Sequence[Any],
    units: int,
    measure: Measure,
    table: Callable[[Sequence[Row]], str],
    unit: str = "rounds",
) -> int:
    """Measure one job after another on one torch thread, write the rows of each, print the table.

    Args:
        units: how often `measure` reports progress, in all jobs together.
    """
    torch.set_num_threads(1)  # all sides: on networks this small more threads wait more than they work
    machine, rows = describe(), []
    print(machine.card(), file=sys.stderr)
    path = Path("reports") / f"benchmark-{datetime.now(UTC):%Y%m%dT%H%M%SZ}" / "rows.jsonl"
    with Progress(units, "benchmark", unit) as progress:
        for job in jobs:
            found = measure(job, lambda note: progress.advance(1, note))
            append(path, found)
            rows += found
    print(table(rows))
    print(f"rows: {path}")
    if options.record:
        print(f"recorded: {record(rows, machine.slug)}")
    return 0
