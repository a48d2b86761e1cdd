"""`rlbench profile dqn|ppo|SCRIPT`: why is it slow?"""

from __future__ import annotations

import argparse
import sys
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
    output_of,
    real,
)
from rlbench.cli.output import DONE, FAILED, Output, refusing
from rlbench.config import DQNConfig, PPOConfig

TRAINERS = {"dqn": DQNConfig, "ppo": PPOConfig}
TRAINER_S, SCRIPT_S = 20.0, 60.0
DOCUMENT = (
    "With --json: phases (name, seconds, share, calls), syncs (file, line, call, count, per_step), advice (name, kind, text, "
    "evidence, instead, predicted_gain, bound, metric, places, choice, notebook), lines, operators, copies, light, criteria, "
    "threads, twins, overhead, machine."
)


def add(commands: Any) -> None:
    parser = commands.add_parser("profile", help="why is it slow? of a trainer of ours, or of your own script")
    what = parser.add_subparsers(metavar="dqn|ppo|SCRIPT", required=True, parser_class=type(parser))
    for name, cls in TRAINERS.items():
        one = what.add_parser(name, help=f"a {name.upper()} training", epilog=DOCUMENT)
        one.add_argument(
            "--apply", action="store_true", help="measure the top suggestions in pairs, beside the prediction"
        )
        _common(one, TRAINER_S)
        add_env(one)
        add_device(one, "cpu")
        add_output(one)
        add_choices(one)
        add_config(one, cls)
        one.set_defaults(run=run_trainer, parser=one, config_class=cls)
    script = what.add_parser(
        "script", help="SCRIPT: a Python file, or -m MODULE; its own arguments after --", epilog=DOCUMENT
    )
    script.add_argument("path", metavar="SCRIPT")
    script.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's dotted name")
    script.add_argument(
        "--no-threads", action="store_true", help="leave the number of torch threads alone all the time"
    )
    _common(script, SCRIPT_S)
    add_output(script)
    script.set_defaults(run=run_script, parser=script)


def _common(parser: argparse.ArgumentParser, seconds: float) -> None:
    parser.add_argument(
        "--seconds", type=real, default=seconds, metavar="S", help=f"for so long (default: {seconds:.0f})"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep profile.json, profile.html and trace.json there")
    parser.add_argument("--html", type=Path, metavar="FILE", help="keep the page alone")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="keep the Chrome trace, for Perfetto")
    parser.add_argument("--force", action="store_true", help="replace files that are there")


def with_script(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The command line, `profile PATH …` as `profile script PATH …`, and the words after `--`, which are the script's."""
    words = list(words)
    if not words or words[0] != "profile":
        return words, []
    own, mark, theirs = words, "", []
    if "--" in words:
        place = words.index("--")
        own, mark, theirs = words[:place], "--", words[place + 1 :]
    first = next((i for i, word in enumerate(own[1:], start=1) if _is_script(own, i)), None)
    if first is not None and not set(own[1:]) & {*TRAINERS, "script"}:
        own = ["profile", "script", *own[1:]]
    return own, theirs if mark else []


def _is_script(words: Sequence[str], place: int) -> bool:
    return words[place].endswith(".py") or words[place] == "-m" or (place == 1 and not words[place].startswith("-"))


def run_trainer(args: argparse.Namespace) -> int:
    from rlbench.profiling import profile_trainer
    from rlbench.workloads import workload

    output, cls = output_of(args), args.config_class
    with refusing():
        _check(args)
        changes = given(args, cls)
        device = device_of(args)
        choices = choices_of(args, device)
        work = workload(args.env, prices=args.prices, ticker=args.ticker)
        config = work.config(args.preset or work.preset_for(cls.trainer), cls.trainer, **changes)
        report = profile_trainer(config, choices, work.env, str(device), args.seconds, progress=output.progress)
    if args.apply:
        from rlbench.profiling.apply import apply

        report.applied = apply(report.evidence.run, report.advice, env=work.env, progress=output.progress)
    return _give(args, output, report)


def run_script(args: argparse.Namespace) -> int:
    from rlbench.profiling import profile_script
    from rlbench.profiling.script import check_script

    output = output_of(args)
    with refusing():
        _check(args)
        check_script(args.path, args.module)
    report = profile_script(args.path, args.theirs, args.seconds, module=args.module, threads=not args.no_threads)
    return _give(args, output, report)


def _check(args: argparse.Namespace) -> None:
    if not args.seconds > 0:
        raise ValueError(f"--seconds {args.seconds}: accepted are numbers above 0.")
    kept = [
        args.html,
        args.trace,
        *([args.out / name for name in ("profile.json", "profile.html")] if args.out else []),
    ]
    for path in kept:
        if path is not None and path.exists() and not args.force:
            raise FileExistsError(f"{path} is there already; give another name, or --force to replace it.")


def _give(args: argparse.Namespace, output: Output, report: Any) -> int:
    """Keep what is to be kept, then the summary."""
    kept = [str(path) for path in report.save(args.out, force=args.force)] if args.out else []
    if args.html:
        report.save_html(args.html, force=args.force)
        kept.append(str(args.html))
    if args.trace:
        report.save_trace(args.trace, force=args.force)
        kept.append(str(args.trace))
    sys.stdout.flush()
    output.result(report.text(), report.document() | {"kept": kept})
    if kept:
        output.say(f"kept: {', '.join(kept)}")
    return FAILED if report.error else DONE
