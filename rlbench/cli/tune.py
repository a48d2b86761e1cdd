"""`rlbench tune dqn|ppo`: the fastest choices for a training on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlbench.cli.arguments import (
    add_config,
    add_device,
    add_env,
    add_output,
    device_of,
    given,
    names,
    output_of,
    real,
    wholes,
)
from rlbench.cli.output import DONE, refusing
from rlbench.cli.rows import Rows, Stop, add_rows
from rlbench.config import DQNConfig, PPOConfig

LEAST_S = 10.0  # of a budget: a race and the last one of the winner
DOCUMENT = (
    "With --json: choices, threads, settings, final (rate, ratio, low, high, aa_low, aa_high, rounds, first_s, compile_s, "
    "verdict), distance (of the weights from plain()'s), returns, return_steps, rejected, left_out, seed, config, budget_s, "
    "seconds, interrupted, rows, file."
)


def add(commands: Any) -> None:
    parser = commands.add_parser("tune", help="the fastest choices for a training on this machine, by races")
    trainers = parser.add_subparsers(metavar="TRAINER", required=True, parser_class=type(parser))
    for cls in (DQNConfig, PPOConfig):
        one = trainers.add_parser(cls.trainer, help=f"of {cls.trainer.upper()}", epilog=DOCUMENT)
        one.add_argument("--budget", type=real, default=120.0, metavar="S", help="seconds to search for (default: 120)")
        one.add_argument(
            "--choices-file", type=Path, default=Path("choices.yaml"), metavar="FILE", help="what to write"
        )
        one.add_argument("--slots", type=names, metavar="A,B", help="the slots that may be changed (default: all)")
        one.add_argument(
            "--try-threads", type=wholes, metavar="N,N", help="torch threads to try (default: 1 and the cores)"
        )
        one.add_argument(
            "--statistical", action="store_true", help="also try what changes numbers by more than rounding"
        )
        one.add_argument("--force", action="store_true", help="replace FILE")
        add_env(one)
        add_device(one, "cpu")
        add_rows(one, Path("runs/tune.jsonl"))
        add_output(one)
        add_config(one, cls)
        one.set_defaults(run=run, parser=one, config_class=cls)


def run(args: argparse.Namespace) -> int:
    from rlbench.trainers.interrupt import interrupt_calls
    from rlbench.tuning import tune
    from rlbench.tuning.text import check_free, document, save_choices, summary, usage
    from rlbench.workloads import workload

    output, cls, stop = output_of(args), args.config_class, Stop()
    with refusing():
        _check(args)
        check_free(args.choices_file, args.force)
        changes, device = given(args, cls), device_of(args)
        work = workload(args.env, prices=args.prices, ticker=args.ticker)
        config = work.config(args.preset or work.preset_for(cls.trainer), cls.trainer, **changes)
        rows = Rows(args)
    with interrupt_calls(stop):
        tuned = tune(
            config,
            work.env,
            device=str(device),
            budget_s=args.budget,
            slots=args.slots,
            statistical=args.statistical,
            threads=args.try_threads,
            eval_env=work.eval_env,
            progress=output.progress,
            should_stop=stop.asked,
            on_row=rows.add,
        )
    save_choices(tuned, args.choices_file, args.force)
    output.say(rows.close())
    use = f"written: {args.choices_file}, for {usage(tuned, str(args.choices_file))}"
    output.result(f"{summary(tuned)}\n{use}", document(tuned) | {"file": str(args.choices_file)})
    return DONE


def _check(args: argparse.Namespace) -> None:
    if args.budget < LEAST_S:
        raise ValueError(f"--budget {args.budget:g}: accepted are {LEAST_S:g} seconds and more; a race takes some.")
    if args.try_threads and min(args.try_threads) < 1:
        raise ValueError(f"--try-threads {args.try_threads}: accepted are whole numbers from 1.")
