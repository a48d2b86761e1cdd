"""`rlbench report`: run the notebooks and bind them into a report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlbench.cli.output import Refusal


def add(commands: Any) -> None:
    parser = commands.add_parser("report", help="run the notebooks and write reports/<time>/index.html")
    parser.add_argument("numbers", nargs="*", metavar="NN", help="numbers of notebooks, such as 01 02 (default: all)")
    parser.add_argument(
        "-p",
        dest="parameters",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set a notebook's parameter; may be repeated",
    )
    parser.add_argument(
        "--parameters", dest="parameters_file", metavar="FILE", help="a YAML or JSON file of parameters, instead of -p"
    )
    parser.add_argument("--full", action="store_true", help="the citable form, which takes longer; else a quick one")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the report goes (default: reports/<time>)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    parameters: dict[str, str] = {}
    for name, value in args.parameters:
        if name in parameters:
            raise Refusal(f"parameter {name!r} is given twice, as {parameters[name]!r} and {value!r}; give it once.")
        parameters[name] = value
    if args.parameters_file is not None and parameters:
        raise Refusal("parameters come from --parameters FILE or from -p, not from both.")
    from rlbench import report

    return report.run(
        args.numbers or None,
        args.parameters_file or parameters or None,
        args.out,
        quick=not args.full,
        progress=False if args.quiet else None,
    )
