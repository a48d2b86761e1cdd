"""The lines that reproduce a panel's state: the command line, papermill's, and the report's."""

from __future__ import annotations

import ast
import dataclasses
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


def command_line(workload: str, env: Any, config: Any, choices: list[str], device: str) -> str:
    """`rlbench train dqn ...`; `choices` are its arguments that say how it is computed.

    Settings that have their default are left out, but for the number of steps and the seed.
    """
    name = env_name(env)
    if name is None:
        return "# The env is an object of this notebook: give its factory as 'module:factory' to get a line."
    words = ["rlbench", "train", workload, "--env", name, *choices]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value != field.default or field.name in ("total_timesteps", "seed"):
            words += flag(field.name, value)
    if device != "cpu":
        words += ["--device", device]
    return shlex.join(words)


def flag(name: str, value: Any) -> list[str]:
    """A setting as arguments of the command line."""
    option = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [option if value else "--no-" + option[2:]]
    return [option, ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]


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
    declared = declared_parameters(path)
    words = [word for name, value in values.items() if name in declared for word in ("-p", name, str(value))]
    number = notebook.split("_", 1)[0]
    return (
        shlex.join(["papermill", f"notebooks/{notebook}.ipynb", "out.ipynb", *words]),
        shlex.join(["rlbench", "report", number, *words]),
    )


def declared_parameters(path: Path) -> list[str]:
    """Names assigned in the notebook's cell tagged "parameters"."""
    document = json.loads(path.read_text(encoding="utf-8"))
    for cell in document["cells"]:
        if "parameters" in cell.get("metadata", {}).get("tags", ()):
            body = ast.parse("".join(cell["source"])).body
            annotated = [node.target for node in body if isinstance(node, ast.AnnAssign)]
            plain = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
            return [target.id for target in annotated + plain if isinstance(target, ast.Name)]
    return []
