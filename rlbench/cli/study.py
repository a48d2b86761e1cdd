"""`rlbench study [dqn|ppo]`: whole trainings under several choices or settings, speed and return side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlbench.cli.arguments import (
    add_choices,
    add_config,
    add_device,
    add_env,
    add_output,
    choices_of,
    device_of,
    given,
    names,
    output_of,
    real,
    wholes,
)
from rlbench.cli.output import DONE, FAILED, Output, refusing
from rlbench.cli.rows import Rows, Stop, add_rows
from rlbench.config import DQNConfig, PPOConfig

CHOICE_MODES = ("choices", "alone", "cumulative", "leave_one_out")
MODES = {
    "dqn": (*CHOICE_MODES, "presets", "batch", "width"),
    "ppo": (*CHOICE_MODES, "presets", "batch", "width", "epochs", "rollout"),
}
ABOUT = "whole trainings: speed and return of several ways, side by side"
DEFAULT_SEEDS, DEFAULT_TRAINER = 3, "dqn"


def add(commands: Any) -> None:
    note = (
        f"Without a TRAINER it is {DEFAULT_TRAINER}: `rlbench study --mode alone` is `rlbench study dqn --mode alone`."
    )
    parser = commands.add_parser("study", help=ABOUT, description=ABOUT, epilog=note)
    trainers = parser.add_subparsers(metavar="TRAINER", required=True, parser_class=type(parser))
    for cls in (DQNConfig, PPOConfig):
        name = cls.trainer
        _add_arguments(trainers.add_parser(name, help=f"{ABOUT}, of {name.upper()}"), cls)


def with_trainer(words: Sequence[str]) -> list[str]:
    """The command line with the trainer that it means where it names none."""
    named = len(words) > 1 and words[1] in (*MODES, "-h", "--help")
    return list(words) if words[0] != "study" or named else [words[0], DEFAULT_TRAINER, *words[1:]]


def _add_arguments(parser: argparse.ArgumentParser, cls: type) -> None:
    more = ", epochs, rollout" if cls is PPOConfig else ""
    parser.add_argument(
        "--mode",
        choices=MODES[cls.trainer],
        default="choices",
        help="choices: naive, plain, fast; alone: plain with one slot changed; cumulative: slots added in order; "
        f"leave_one_out: fast with one slot back; presets, batch, width{more}: other settings (default: choices)",
    )
    parser.add_argument("--slots", type=names, metavar="SLOT,…", help="the slots to change, in order (default: all)")
    parser.add_argument(
        "--seeds",
        type=wholes,
        default=(DEFAULT_SEEDS,),
        metavar="N|N,N",
        help=f"how many seeds, from 1 on, or a list of them; ten to cite (default: {DEFAULT_SEEDS})",
    )
    parser.add_argument(
        "--to-return", type=real, metavar="R", help="wall-clock to this return; needs --eval-frequency above 0"
    )
    add_env(parser)
    add_device(parser, "cpu")
    add_rows(parser, Path("runs/study.jsonl"))
    add_output(parser)
    add_choices(parser)
    add_config(parser, cls, leave_out=("seed",))
    parser.set_defaults(run=run, parser=parser, config_class=cls)


def run(args: argparse.Namespace) -> int:
    from rlbench.study import plan, study, summarise
    from rlbench.trainers.interrupt import interrupt_calls
    from rlbench.workloads import workload

    output, stop, cls = output_of(args), Stop(), args.config_class
    with refusing():
        seeds = seeds_of(args.seeds)
        device = device_of(args)
        choices = choices_of(args, device) if args.choices or args.set else None
        work = workload(args.env, prices=args.prices, ticker=args.ticker)
        config = work.config(args.preset, cls.trainer, **given(args, cls))
        if args.to_return is not None and not config.eval_frequency:
            raise ValueError("--to-return needs evaluations while training: add --eval-frequency STEPS.")
        planned = plan(args.mode, config, device=device, slots=args.slots, choices=choices, env=work.env)
        rows = Rows(args)
    announce(output, planned, seeds)
    with interrupt_calls(stop):
        trained = study(
            planned,
            work.env,
            eval_env=work.eval_env,
            env_name=work.name,
            seeds=seeds,
            progress=output.progress,
            should_stop=stop.asked,
            on_row=rows.add,
        )
    output.say(rows.close())
    summary = summarise(trained, to_return=args.to_return) if trained else None
    document = {"rows": trained, "summary": [] if summary is None else summary.to_dict("records")}
    output.result("no training was completed" if summary is None else table(summary), document)
    return DONE if trained else FAILED


def seeds_of(given_seeds: tuple[int, ...]) -> list[int]:
    """A single number is how many; several are the seeds themselves."""
    if len(given_seeds) == 1:
        if given_seeds[0] < 1:
            raise ValueError(f"--seeds {given_seeds[0]}: at least 1 is needed.")
        return list(range(1, given_seeds[0] + 1))
    if len(set(given_seeds)) < len(given_seeds) or min(given_seeds) < 0:
        raise ValueError(f"--seeds {','.join(map(str, given_seeds))}: accepted are different whole numbers from 0.")
    return list(given_seeds)


def announce(output: Output, planned: Any, seeds: list[int]) -> None:
    usable = [variant for variant in planned.variants if variant.barred is None]
    steps = sum(variant.config.total_timesteps for variant in [*usable, planned.baseline]) * len(seeds)
    output.say(
        f"study {planned.mode}: {len(usable)} ways and the A/A control, {len(seeds)} seeds, {steps:,} env steps in all"
    )
    for variant in planned.variants:
        if variant.barred is not None:
            output.say(f"  left out: {variant.barred}")
    for sentence in planned.left_out:
        output.say(f"  left out: {sentence}")


def table(summary: Any) -> str:
    """The summary for a terminal."""
    head = ("label", "seeds", "sps", "ratio", "95 % interval", "A/A band", "speed", "return", "learns", "100k", "1M")
    lines: list[tuple[str, ...]] = [head]
    for row in summary.itertuples():
        if isinstance(row.not_measured, str):
            lines.append((row.label, "0", *["-"] * 4, "not measured here", *["-"] * 4))
            continue
        lines.append(
            (
                row.label,
                str(row.seeds),
                f"{row.sps:,.0f}",
                f"{row.sps_ratio:.3f}x",
                f"[{row.sps_ratio_low:.3f}, {row.sps_ratio_high:.3f}]",
                f"[{row.aa_low:.3f}, {row.aa_high:.3f}]",
                row.speed,
                f"{row.return_iqm:.4g} [{row.return_low:.4g}, {row.return_high:.4g}]",
                row.learns,
                f"{row.projected_total_ratio_100k:.3f}x",
                f"{row.projected_total_ratio_1m:.3f}x",
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    text.insert(1, "  ".join("-" * width for width in widths))
    text.append("100k and 1M: ratios of total time projected from measured compile time and steps a second.")
    reached = [row for row in summary.itertuples() if getattr(row, "reached", "") not in ("", None)]
    for row in reached:
        if isinstance(row.reached, str):
            text.append(
                f"{row.label}: return {row.to_return:.4g} after {row.seconds_to_return:.3g} s, {row.reached} seeds"
            )
    if (summary["seeds"] < 10).any():
        text.append("fewer than ten seeds, quick: do not cite")
    return "\n".join(text)
