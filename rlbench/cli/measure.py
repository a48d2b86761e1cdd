"""`rlbench measure`: check and time the optimizations, one slot at a time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlbench.cli.arguments import add_device, add_output, device_of, output_of, whole, wholes
from rlbench.cli.output import DONE, FAILED, refusing
from rlbench.cli.rows import Rows, Stop, add_rows


def add(commands: Any) -> None:
    parser = commands.add_parser("measure", help="is each optimization's outcome the same, and how much faster is it?")
    parser.add_argument("slots", nargs="*", metavar="SLOT", help="slots, such as replay optimizer (default: all)")
    parser.add_argument("--rounds", type=whole, default=20, metavar="N", help="paired rounds (default: 20, to cite)")
    parser.add_argument("--sizes", type=wholes, metavar="N,N", help="sizes to measure at (default: each slot's own)")
    parser.add_argument("--quick", action="store_true", help="fewer, shorter rounds at one size: not to be cited")
    add_device(parser, "auto")
    add_rows(parser, Path("runs/measure.jsonl"))
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from rlbench.measure import format_table, measure
    from rlbench.trainers.interrupt import interrupt_calls

    output, stop = output_of(args), Stop()
    with refusing():
        check(args)
        rows = Rows(args)
    with interrupt_calls(stop):
        measured = measure(
            args.slots or None,
            sizes=args.sizes,
            device=args.device,
            rounds=args.rounds,
            quick=args.quick,
            progress=not args.quiet,
            should_stop=stop.asked,
            on_row=rows.add,
        )
    output.say(rows.close())
    output.result(format_table(measured), {"rows": measured})
    return FAILED if any(row["same"] is False for row in measured) else DONE


def check(args: argparse.Namespace) -> None:
    """Refuse unknown slots, sizes, rounds and devices before anything is measured."""
    import difflib

    from rlbench.speedups import SPEEDUPS

    for slot in args.slots:
        if slot not in SPEEDUPS:
            near = difflib.get_close_matches(slot, SPEEDUPS, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ValueError(f"there is no slot {slot!r}: {hint}slots are {', '.join(SPEEDUPS)}.")
    for size in args.sizes or ():
        if size < 1:
            raise ValueError(f"--sizes {size}: accepted are whole numbers from 1.")
    if args.rounds < 1:
        raise ValueError(f"--rounds {args.rounds}: accepted are whole numbers from 1.")
    device_of(args)
