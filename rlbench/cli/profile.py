"""`rlbench profile dqn|ppo|SCRIPT`: why is it slow?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlbench.cli.arguments import (
    Parser,
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
from rlbench.cli.output import DONE, FAILED, INTERRUPTED, Output, refusing, sentence
from rlbench.cli.theirs import printable, their_own
from rlbench.config import DQNConfig, PPOConfig

TRAINERS = {"dqn": DQNConfig, "ppo": PPOConfig}
TRAINER_S, SCRIPT_S, MOST_S = 20.0, 60.0, 1e9
VALUED = ("--seconds", "--out", "--html", "--trace")  # flags of a script's profile that are followed by a value
FILES = ("profile.json", "profile.html", "trace.json")
DOCUMENT = (
    "With --json: findings, phases (name, seconds, share, calls, part_of), syncs (file, line, call, count, per_step, source), "
    "advice (name, kind, text, evidence, instead, predicted_gain, bound, metric, places, choice, notebook), lines, operators, "
    "copies, light, criteria, threads, device_use, twins, overhead, settings, machine, kept (files that were written)."
)


class ProfileParser(Parser):
    """Words that are no flags of a profile may have been meant for the script."""

    def refuse_unknown(self, rest: Sequence[str]) -> None:
        if rest and self.get_default("run") is run_script:
            self.error(f"unknown argument {rest[0]!r}; what is meant for the script goes after `--`")
        super().refuse_unknown(rest)


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "profile",
        help="why is it slow? of a trainer of ours, or of your own script",
        description="Where the time goes, what waits, and what to change: `rlbench profile dqn`, `rlbench profile SCRIPT.py "
        "-- its arguments`, `rlbench profile -m package.module -- its arguments`.",
    )
    what = parser.add_subparsers(metavar="dqn|ppo|SCRIPT", required=True, parser_class=ProfileParser)
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
        "script",
        help="SCRIPT.py, or -m MODULE; its own arguments after --",
        epilog=f"What follows `--` is the script's, word for word. {DOCUMENT}",
        prog="rlbench profile",
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
    place = words.index("--") if "--" in words else len(words)
    own, theirs = words[:place], words[place + 1 :]
    named = _named(own[1:])
    if named is not None and named not in (*TRAINERS, "script"):
        own = ["profile", "script", *own[1:]]
    return own, theirs


def _named(words: Sequence[str]) -> str | None:
    """The first word that is neither a flag nor the value of one: a trainer or a script."""
    before = ""
    for word in words:
        if not word.startswith("-") and before not in VALUED:
            return word
        before = word
    return None


def run_trainer(args: argparse.Namespace) -> int:
    from rlbench.profiling import profile_trainer
    from rlbench.workloads import workload

    output, cls = output_of(args), args.config_class
    with refusing():
        _check(args)
        if args.theirs:
            raise ValueError(f"after `--` stands {args.theirs[0]!r}: only a script has arguments of its own.")
        changes = given(args, cls)
        device = device_of(args)
        choices = choices_of(args, device)
        work = workload(args.env, prices=args.prices, ticker=args.ticker)
        config = work.config(args.preset or work.preset_for(cls.trainer), cls.trainer, **changes)
    report = profile_trainer(config, choices, work.env, str(device), args.seconds, progress=output.progress)
    if args.apply:
        _apply(report, work.env, output)
    return _give(args, output, report)


def _apply(report: Any, env: Any, output: Output) -> None:
    """Measure the suggestions; whoever has no patience for it keeps the profile."""
    from rlbench.profiling.apply import apply

    try:
        report.applied = apply(report.evidence.run, report.advice, env=env, progress=output.progress)
    except KeyboardInterrupt:
        print("rlbench: interrupted; the profile follows, without what was to be applied", file=sys.stderr)


def run_script(args: argparse.Namespace) -> int:
    from rlbench.profiling import profile_script
    from rlbench.profiling.script import WAS_INTERRUPTED, check_script

    output = output_of(args)
    with refusing():
        _check(args)
        check_script(args.path, args.module)
    output.say(f"profiling {args.path} for at most {args.seconds:g} s")
    with their_own():
        report = profile_script(args.path, args.theirs, args.seconds, module=args.module, threads=not args.no_threads)
    code = _give(args, output, report)
    return INTERRUPTED if report.error == WAS_INTERRUPTED else code


def _check(args: argparse.Namespace) -> None:
    """Refuse before the run what could not be kept after it."""
    if not 0 < args.seconds <= MOST_S:
        raise ValueError(f"--seconds {args.seconds}: accepted are numbers above 0, up to {MOST_S:g}.")
    if args.out is not None and args.out.exists() and not args.out.is_dir():
        raise ValueError(f"--out {args.out}: that is a file; give the name of a folder.")
    for path in (args.html, args.trace, *(args.out / name for name in FILES if args.out)):
        if path is None:
            continue
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give the name of a file.")
        if path.exists() and not args.force:
            raise FileExistsError(f"{path} is there already; give another name, or --force to replace it.")


def _give(args: argparse.Namespace, output: Output, report: Any) -> int:
    """The summary, and what is to be kept. What cannot be kept is said, and loses nothing else."""
    kept, lost = _keep(args, report)
    sys.stdout.flush()
    output.result(printable(report.text(), sys.stdout), report.document() | {"kept": kept})
    if kept:
        output.say(f"kept: {', '.join(kept)}")
    return FAILED if report.error or lost else DONE


def _keep(args: argparse.Namespace, report: Any) -> tuple[list[str], bool]:
    """The files that were written, and whether one could not be. That a short run has no trace is no failure, but is said."""
    from rlbench.profiling.report import ReportError

    kept: list[str] = []
    lost = False
    for path, save in ((args.out, report.save), (args.html, report.save_html), (args.trace, report.save_trace)):
        if path is None:
            continue
        try:
            made = save(path, force=args.force)
            kept += [str(each) for each in made or [path]]
        except (OSError, ReportError) as error:
            print(f"rlbench: {path} is not kept: {sentence(error)}", file=sys.stderr)
            lost = lost or isinstance(error, OSError)
    return kept, lost
