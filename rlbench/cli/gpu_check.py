"""`rlbench gpu-check`: is CUDA right, is it faster, from which size on, and what does it cost? One command, a few minutes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlbench.cli.arguments import add_device, add_output, device_of, output_of, real, whole
from rlbench.cli.output import DONE, FAILED, refusing
from rlbench.cli.rows import Rows, Stop, add_rows


def add(commands: Any) -> None:
    about = "check CUDA against the CPU, then speed, sizes from which the GPU pays, and costs; needs torch alone"
    parser = commands.add_parser("gpu-check", help=about, description=about)
    parser.add_argument(
        "--price", type=real, metavar="X", help="of an hour of this GPU: adds the cost of a million steps"
    )
    parser.add_argument(
        "--cpu-price", type=real, metavar="X", help="of an hour of the CPU it is held against (default: the same price)"
    )
    parser.add_argument("--minutes", type=real, default=7.0, metavar="X", help="time for all sections (default: 7)")
    parser.add_argument("--quick", action="store_true", help="the least of everything, to see that it works")
    parser.add_argument("--seed", type=whole, default=1, metavar="N", help="of inputs and trainings (default: 1)")
    add_device(parser, "auto")
    add_rows(parser, Path("runs/gpu-check.jsonl"))
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from rlbench.gpu_check import gpu_check, has_failed, summary
    from rlbench.gpu_check.text import document
    from rlbench.trainers.interrupt import interrupt_calls

    output, stop = output_of(args), Stop()
    with refusing():
        check(args)
        rows = Rows(args)
    with interrupt_calls(stop):
        found = gpu_check(
            device=device_of(args),
            minutes=args.minutes,
            quick=args.quick,
            price=args.price,
            cpu_price=args.cpu_price,
            seed=args.seed,
            progress=output.progress,
            on_row=rows.add,
            should_stop=stop.asked,
        )
    output.say(rows.close())
    output.result(summary(found), document(found))
    return FAILED if has_failed(found) else DONE


def check(args: argparse.Namespace) -> None:
    """Refuse numbers and devices that cannot be used before anything is measured."""
    for flag, number in (("--minutes", args.minutes), ("--price", args.price), ("--cpu-price", args.cpu_price)):
        if number is not None and not 0 < number < float("inf"):
            raise ValueError(f"{flag} {number:g}: accepted are numbers above 0.")
    if args.cpu_price is not None and args.price is None:
        raise ValueError("--cpu-price belongs to --price X, which was not given.")
    device_of(args)
