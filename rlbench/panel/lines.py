"""The lines that reproduce a panel's state: the command line, Python's, papermill's, and the report's."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from rlbench.reporting.kernel import ROOT
from rlbench.reporting.parameters import of_notebook
from rlbench.workloads import GAMES, SIMULATED, TRADING, workload

NOTEBOOKS = ROOT / "notebooks"


def command_line(trainer: str, env: Any, config: Any, preset: Any, choices: list[str], device: str) -> str:
    """`rlbench train dqn|ppo ...`; `choices` are its arguments that say how it is computed.

    Settings that are those of `preset`, which the command takes by itself, are left out, but for steps and seed.
    """
    name = env_name(env)
    if name is None:
        return "# The env is an object of this notebook: give its factory as 'module:factory' to get a line."
    words = ["rlbench", "train", trainer, "--env", name, *choices]
    for field, value in changes(config, preset).items():
        words += flag(field, value)
    if device != "cpu":
        words += ["--device", device]
    return shlex.join(words)


def changes(config: Any, preset: Any) -> dict[str, Any]:
    """The settings that are not those of `preset`, and steps and seed."""
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    told = ("total_timesteps", "seed")
    return {name: value for name, value in values.items() if name in told or value != getattr(preset, name)}


def python_lines(trainer: str, env: Any, config: Any, preset: tuple[str, Any], choices: str, device: str) -> str:
    """What trains the same from Python.

    Args:
        env: a name, or an object, which the lines then call `env`.
        preset: its name and its settings.
        choices: the expression behind `rlbench.Choices`, such as `.fast()`.
    """
    kind, name, own = type(config).__name__, env_name(env), changes(config, preset[1])
    settings = ", ".join(f"{field}={value!r}" for field, value in own.items())
    made = f"({settings})" if preset[0] == "default" else f".preset({preset[0]!r}, {settings})"
    before, given = ["import rlbench"], f"env={name!r}" if name is not None else "env=env"
    if name in (*GAMES, *TRADING, *SIMULATED):
        before += ["from rlbench.workloads import workload", f"work = workload({name!r})"]
        given = "env=work.env" if name in GAMES else "env=work.env, eval_env=work.eval_env"
    where = "" if device == "cpu" else f", device={device!r}"
    line = (
        f"history = rlbench.{trainer.upper()}(rlbench.{kind}{made}, rlbench.Choices{choices}, {given}{where}).train()"
    )
    return "\n".join([*before, line])


def flag(name: str, value: Any) -> list[str]:
    """A setting as arguments of the command line."""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return ["--" + name.replace("_", "-"), text.lower() if isinstance(value, bool) else text]


def env_name(env: Any) -> str | None:
    """What `--env` takes for this env, or None."""
    if isinstance(env, str):
        return env
    if game := named_game(env):
        return game
    module, name = getattr(env, "__module__", "__main__"), getattr(env, "__qualname__", "<")
    importable = callable(env) and module not in ("__main__", "builtins") and name.isidentifier()
    return f"{module}:{name}" if importable else None


def named_game(env: Any) -> str | None:
    """The name of a game's rules, where they have one."""
    rules = ((name, workload(name).env) for name in GAMES)
    return next((name for name, game in rules if type(game) is type(env) and game == env), None)


def notebook_lines(notebook: str, values: Mapping[str, Any], folder: Path | None = None) -> tuple[str, str]:
    """(papermill's line, the report's line) for the `values` that the notebook declares as parameters."""
    path = (folder or NOTEBOOKS) / f"{notebook}.ipynb"
    if not path.is_file():
        absent = f"# There is no notebook {notebook}.ipynb beside the package."
        return absent, absent
    declared = of_notebook(nbformat.read(path, as_version=4), notebook)
    words = [word for name, value in values.items() if name in declared for word in ("-p", name, str(value))]
    number = notebook.split("_", 1)[0]
    return (
        shlex.join(["papermill", f"notebooks/{notebook}.ipynb", "out.ipynb", *words]),
        shlex.join(["rlbench", "report", number, *words]),
    )
