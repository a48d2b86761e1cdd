"""From an argument list to a command and an exit code: 0 done, 1 a check or notebook failed, 2 the input was refused."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rlbench.cli import gpu_check, machine, measure, profile, report, study, train, tune
from rlbench.cli.arguments import Parser, with_hyphens
from rlbench.cli.output import DONE, INTERRUPTED, REFUSED, Refusal, plain_warnings, sentence

COMMANDS = (train, profile, tune, measure, study, report, gpu_check, machine)
EXIT_CODES = "Exit codes: 0 done, 1 a check or notebook failed, 2 the input was refused."
QUESTIONS = """\
rlbench answers three questions about reinforcement-learning training.

Why is my training slow?
  rlbench machine                            what this machine is, and what disturbs it
  rlbench profile dqn --env CartPole-v1      where the time goes, what waits, what to change and what that brings
  rlbench profile your_script.py -- args     the same of your own training script
  rlbench report 01 02                       CPU or GPU? Where does the time go? in notebooks

What makes it faster here, and does it still learn the same?
  rlbench tune dqn --budget 120              the fastest choices for this training, by races on this machine
  rlbench measure                            every optimization, checked and timed in pairs
  rlbench study --mode alone --seeds 10      whole trainings: speed and return side by side
  rlbench study ppo --env othello4           the same for PPO, here on a game
  rlbench gpu-check --price 0.50             on a GPU: is it right, from which size is it faster, what does it cost?

Train it.
  rlbench train dqn --env CartPole-v1 --choices fast
  rlbench train dqn --prices FILE.csv --out runs/first
  rlbench train ppo --env othello --choices fast --out runs/othello

`rlbench report` answers the first two in notebooks. `rlbench COMMAND --help` tells the rest."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code; an error that is not the input's fault is raised as it is."""
    words = sys.argv[1:] if argv is None else argv
    if not words:
        print(QUESTIONS)
        return DONE
    try:
        args = parse(words)
        if os.getcwd() not in sys.path and "" not in sys.path:
            sys.path.insert(0, os.getcwd())  # so that module:factory finds the reader's file, as `python -m` does
        with plain_warnings():
            return args.run(args)
    except Refusal as error:
        return _refused(error)
    except RuntimeError as error:
        if isinstance(error, _out_of_memory()):
            return _refused(error)
        raise
    except ValueError as error:
        if isinstance(error, _refusals()):
            return _refused(error)
        raise
    except KeyboardInterrupt:
        print("rlbench: interrupted", file=sys.stderr)
        return INTERRUPTED
    except SystemExit as leaving:  # argparse, after --help
        return int(leaving.code or 0)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The namespace of one command; `run` in it is the command's function, `theirs` the words after `--` for a script."""
    words, theirs = profile.with_script(words)
    words = with_hyphens(words)
    parser = Parser(prog="rlbench", description=QUESTIONS.splitlines()[0], epilog=EXIT_CODES)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for command in COMMANDS:
        command.add(commands)
    args, rest = parser.parse_known_args(study.with_trainer(words))
    args.parser.refuse_unknown(rest)
    args.theirs = theirs
    return args


def _refused(error: BaseException) -> int:
    print(f"rlbench: {sentence(error)}".replace("rlbench: rlbench", "rlbench"), file=sys.stderr)
    return REFUSED


def _out_of_memory() -> type:
    from rlbench.trainers.memory import OutOfMemory

    return OutOfMemory


def _refusals() -> tuple[type, ...]:
    """The errors that say what is wrong with the input. Imported only once there is one."""
    from rlbench.buffers import ReplayError
    from rlbench.config import ConfigError
    from rlbench.envs.spaces import EnvError
    from rlbench.prices.errors import PriceError
    from rlbench.speedups import ChoiceError

    return ConfigError, ChoiceError, EnvError, PriceError, ReplayError
