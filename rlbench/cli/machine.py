"""`rlbench machine`: what this machine is, and what would disturb a measurement on it."""

from __future__ import annotations

import argparse
from typing import Any

from rlbench.cli.arguments import add_output, output_of
from rlbench.cli.output import DONE


def add(commands: Any) -> None:
    parser = commands.add_parser("machine", help="what this machine is, and what disturbs a measurement on it")
    add_output(parser, quiet=False)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from rlbench.machine import describe

    machine = describe()
    output_of(args).result(machine.card(), machine.to_dict())
    return DONE
