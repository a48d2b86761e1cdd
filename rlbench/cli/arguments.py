"""Arguments that commands share: a parser that refuses in one sentence, and flags made from a config's fields."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from rlbench.cli.output import Output, Refusal
from rlbench.config import fields_of

if TYPE_CHECKING:
    import torch

ALIASES = {
    "--lr": "--learning-rate",
    "--timesteps": "--total-timesteps",
    "--steps": "--total-timesteps",
    "--epsilon": "--start-e",
    # as Stable-Baselines3 has them
    "--n-envs": "--num-envs",
    "--n-steps": "--num-steps",
    "--n-epochs": "--update-epochs",
    "--epochs": "--update-epochs",
    "--clip-range": "--clip-coef",
}
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Parser(argparse.ArgumentParser):
    """No abbreviations, since a misspelt flag must not pass for another; errors are one sentence."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise Refusal(f"{self.prog}: {message} (see `{self.prog} --help`)")

    def refuse_unknown(self, rest: Sequence[str]) -> None:
        """Refuse what no argument took, and name the nearest flag."""
        if not rest:
            return
        flag = next((word for word in rest if word.startswith("-")), rest[0]).partition("=")[0]
        if not flag.startswith("-"):
            self.error(f"unknown argument {flag!r}")
        known = [option for option in self._option_string_actions if option.startswith("--")]
        known = [option for option in known if option != "--help"]
        alias = ALIASES.get(flag)
        near = [alias] if alias in known else difflib.get_close_matches(flag, known, n=1)
        self.error(f"unknown flag {flag!r}" + (f"; did you mean {near[0]}" if near else ""))


def with_hyphens(argv: Sequence[str]) -> list[str]:
    """`--total_timesteps=5` as `--total-timesteps=5`; values stay as they are."""
    words = []
    for word in argv:
        if word.startswith("--") and len(word) > 2:
            flag, equals, value = word.partition("=")
            word = flag.replace("_", "-") + equals + value
        words.append(word)
    return words


def boolean(text: str) -> bool:
    """true or false, in any case; "false" is False."""
    if text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def whole(text: str) -> int:
    """A decimal whole number: 0010 is 10, and 1e5 is 100000."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
        if number.is_integer():
            return int(number)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")


def real(text: str) -> float:
    """A number, in any of Python's forms: 1e-4 too."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def wholes(text: str) -> tuple[int, ...]:
    """Whole numbers between commas: 64,64."""
    return tuple(whole(part.strip()) for part in text.split(","))


def names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def pair(text: str) -> tuple[str, str]:
    """SLOT=VARIANT."""
    slot, equals, variant = (part.strip() for part in text.partition("="))
    if not (slot and equals and variant):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form SLOT=VARIANT, such as replay=ring_torch")
    return slot, variant


READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    bool: (boolean, "true|false"),
    int: (whole, "N"),
    float: (real, "X"),
    str: (str, "NAME"),
    tuple[int, ...]: (wholes, "N,N"),
}


def add_config(parser: argparse.ArgumentParser, cls: type, leave_out: Sequence[str] = ()) -> None:
    """A flag for each field of a config class; only those that were given appear in the namespace."""
    about = "what is learnt; what is not given comes from the preset, then from the defaults shown"
    group = parser.add_argument_group("settings", about)
    group.add_argument("--preset", choices=list(cls.PRESETS), help="several settings at once (default: the env's own)")
    for field, kind in fields_of(cls):
        if field.name in leave_out:
            continue
        read, metavar = (str, "|".join(field.metadata["one_of"])) if kind is str else READERS[kind]
        default = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
        more: dict[str, Any] = {"nargs": "?", "const": True} if kind is bool else {}
        more |= {"choices": field.metadata["one_of"]} if kind is str else {}
        group.add_argument(
            "--" + field.name.replace("_", "-"),
            dest=field.name,
            type=read,
            metavar=metavar,
            default=argparse.SUPPRESS,
            help=f"{field.metadata['help']} ({default})",
            **more,
        )


def given(args: argparse.Namespace, cls: type) -> dict[str, Any]:
    """The config's fields that were given on the command line."""
    return {field.name: getattr(args, field.name) for field, _ in fields_of(cls) if hasattr(args, field.name)}


def add_env(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("environment")
    group.add_argument(
        "--env",
        metavar="NAME",
        help="a Gymnasium id, module:factory, trading, minutes, ou, sine or martingale; for PPO also a game: othello, "
        "othello6, othello4 or bandit (default: CartPole-v1; with --prices or --ticker: trading)",
    )
    group.add_argument("--prices", metavar="FILE", help="CSV or Parquet file of prices to trade on")
    group.add_argument("--ticker", metavar="T", help="which instrument, where a file holds several, or AAPL, IBM, …")


def add_choices(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("choices", "how it is computed")
    group.add_argument("--choices", metavar="naive|plain|fast|FILE", help="one variant for every slot (default: plain)")
    group.add_argument(
        "--set", dest="set", action="append", type=pair, default=[], metavar="SLOT=VARIANT", help="change one slot"
    )


def add_device(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--device", default=default, metavar="D", help=f"auto, cpu, cuda or cuda:N (default: {default})"
    )
    parser.add_argument(
        "--threads",
        type=whole,
        default=1,
        metavar="N",
        help="torch threads on the CPU; 0 leaves torch's own number. Small networks are fastest on one, and several "
        "stand still where something else is running (default: 1)",
    )


def device_of(args: argparse.Namespace) -> torch.device:
    """The device asked for; sets the number of threads of this process."""
    import torch

    from rlbench.machine import resolve_device

    if args.threads < 0:
        raise ValueError(f"--threads {args.threads}: accepted are 0, which leaves torch's own number, and more.")
    if args.threads:
        torch.set_num_threads(args.threads)
    return resolve_device(args.device)


def add_output(parser: argparse.ArgumentParser, quiet: bool = True) -> None:
    parser.add_argument("--json", action="store_true", help="end standard output with one JSON document")
    if quiet:
        parser.add_argument("--quiet", action="store_true", help="no progress, no talk; notices and refusals stay")


def output_of(args: argparse.Namespace) -> Output:
    return Output(getattr(args, "json", False), getattr(args, "quiet", False))


def choices_of(args: argparse.Namespace, device: Any) -> Any:
    """The `Choices` that the arguments ask for, on a resolved device."""
    from rlbench.speedups import Choices

    choices = Choices.named(args.choices or "plain", device)
    return choices.replace(**dict(args.set)) if args.set else choices
