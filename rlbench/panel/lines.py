"""The lines that reproduce a panel's state: the command line, papermill's, and the report's."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from rlbench.reporting.kernel import ROOT
from rlbench.reporting.parameters import of_notebook

NOTEBOOKS = ROOT / "notebooks"


def command_line(workload: str, env: Any, config: Any, preset: Any, choices: list[str], device: str) -> str:
    """`rlbench train dqn ...`; `choices` are its arguments that say how it is computed.

    Settings that are those of `preset`, which the command takes by itself, are left out, but for steps and seed.
    """
    name = env_name(env)
    if name is None:
        return "# The env is an object of this notebook: give its factory as 'module:factory' to get a line."
    words = ["rlbench", "train", workload, "--env", name, *choices]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value != getattr(preset, field.name) or field.name in ("total_timesteps", "seed"):
            words += flag(field.name, value)
    if device != "cpu":
        words += ["--device", device]
    return shlex.join(words)


def flag(name: str, value: Any) -> list[str]:
    """A setting as arguments of the command line."""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return ["--" + name.replace("_", "-"), text.lower() if isinstance(value, bool) else text]


def env_name(env: Any) -> str | None:
    """What `--env` takes for this env, or None."""
    if isinstance(env, str):
        return env
    module, name = getattr(env, "__module__", "__main__"), getattr(env, "__qualname__", "<")
    importable = callable(env) and module not in ("__main__", "builtins") and name.isidentifier()
    return f"{module}:{name}" if importable else None


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
