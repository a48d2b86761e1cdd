"""Run the benchmarks one after another, each in a process of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Short ones first: what does not work here shows early.
MODULES = (
    "update_step",
    "iteration",
    "env_steps",
    "othello_steps",
    "evaluate_sets",
    "profile_overhead",
    "tune_grid",
    "cpprb_replay",
    "sb3_ppo",
    "ppo_run",
    "run",
    "to_475",
    "planted_faults",
)


def commands(options: argparse.Namespace) -> list[list[str]]:
    """The command lines of the benchmarks asked for."""
    chosen = [module for module in MODULES if options.only.lower() in module]
    if not chosen:
        raise SystemExit(f"--only {options.only!r} matches none of: {', '.join(MODULES)}")
    kept = [f"--{name}" for name in ("quick", "record") if getattr(options, name)]
    return [[sys.executable, "-m", f"benchmarks.{module}", *kept] for module in chosen]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.all", description=__doc__)
    parser.add_argument(
        "--only", default="", metavar="TEXT", help=f"those with TEXT in their name: {', '.join(MODULES)}"
    )
    parser.add_argument("--quick", action="store_true", help="for a look; stamped as not to be cited")
    parser.add_argument("--record", action="store_true", help="also write reports/measurements/<machine>/…json")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The last exit status that was not 0; a benchmark that fails does not keep the others from running."""
    status = 0
    for command in commands(parse(arguments)):
        print(f"\n{' '.join(command[2:])}", flush=True)
        status = subprocess.run(command, cwd=ROOT).returncode or status
    return status


if __name__ == "__main__":
    sys.exit(main())
