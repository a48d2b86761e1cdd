"""Parameters of notebooks: what the cell tagged `parameters` declares, and values checked against it before anything runs.

papermill only warns of a name that no cell declares, and its command line turns `false` into a text, which is true. Here a
value is converted by the declared annotation, or refused.
"""

from __future__ import annotations

import ast
import difflib
import io
import math
import os
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TAG = "parameters"
WHAT = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}
WHAT |= {f"list[{kind}]": f"a list of {kind}s, such as [a, b] or a,b" for kind in ("int", "float", "bool", "str")}
WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class ParameterError(ValueError):
    """A parameter that cannot be used; one sentence that names it, what was found and what is accepted."""


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: `name: kind = default  # help`."""

    name: str
    kind: str
    default: Any
    help: str


def declared(source: str, where: str = "the parameters cell") -> dict[str, Parameter]:
    """The parameters that a cell declares: annotated literals, one a line, and nothing else.

    Raises ParameterError for anything else in it, an unknown annotation, or a default of another type.
    """
    comments = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found: dict[str, Parameter] = {}
    for node in ast.parse(source).body:
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None):
            raise ParameterError(f"{where}, line {node.lineno}: only `name: type = literal  # meaning` may stand here.")
        name, kind = node.target.id, ast.unparse(node.annotation)
        if kind not in WHAT:
            raise ParameterError(f"{where}: {name} is annotated {kind}; accepted are {', '.join(WHAT)}.")
        try:
            default = ast.literal_eval(node.value)
        except ValueError:
            raise ParameterError(f"{where}: the default of {name} is not a literal.") from None
        converted(name, kind, default, where)
        found[name] = Parameter(name, kind, default, comments.get(node.end_lineno or node.lineno, ""))
    return found


def of_notebook(notebook: Any, name: str) -> dict[str, Parameter]:
    """The parameters of a notebook; none without a tagged cell."""
    for cell in notebook.cells:
        if TAG in cell.metadata.get("tags", []):
            return declared(cell.source, name)
    return {}


def converted(name: str, kind: str, value: Any, where: str) -> Any:
    """`value` as `kind`: text is read, whole numbers pass as floats, nothing else changes type.

    Raises ParameterError.
    """
    try:
        if kind.startswith("list["):
            return [_scalar(kind[5:-1], item) for item in _items(value)]
        return _scalar(kind, value)
    except (ValueError, TypeError):
        raise ParameterError(f"parameter {name} of {where} takes {WHAT[kind]}, not {value!r}.") from None


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        text = value.strip()
        text = text[1:-1] if text[:1] + text[-1:] in ("[]", "()") else text
        return [part.strip().strip("\"'") for part in text.split(",")] if text.strip() else []
    if isinstance(value, list | tuple):
        return value
    raise TypeError


def _scalar(kind: str, value: Any) -> Any:
    if kind == "str":
        return value if isinstance(value, str) else _refuse()
    if isinstance(value, str):
        return _read(kind, value.strip())
    if isinstance(value, bool) or kind == "bool":
        return value if isinstance(value, bool) and kind == "bool" else _refuse()
    if kind == "int":
        return value if isinstance(value, int) else _refuse()
    return _finite(float(value)) if isinstance(value, int | float) else _refuse()


def _read(kind: str, text: str) -> Any:
    """Decimal digits only for whole numbers: 0010 is ten, 0x10 and 1e3 are refused."""
    if kind == "bool":
        return WORDS[text.lower()] if text.lower() in WORDS else _refuse()
    if kind == "int":
        return int(text, 10) if re.fullmatch(r"[+-]?\d+(_\d+)*", text) else _refuse()
    return _finite(float(text))


def _finite(number: float) -> float:
    return number if math.isfinite(number) else _refuse()


def _refuse() -> Any:
    raise ValueError


def assign(
    given: Mapping[str, Any], notebooks: Mapping[str, Mapping[str, Parameter]], everything: bool
) -> dict[str, dict[str, Any]]:
    """Which converted values go to which notebook.

    A name must be declared by every selected notebook, or, where `everything` runs, by at least one, and goes to those.
    Raises ParameterError.
    """
    assigned: dict[str, dict[str, Any]] = {notebook: {} for notebook in notebooks}
    for name, value in given.items():
        lacking = [notebook for notebook, known in notebooks.items() if name not in known]
        if lacking and (not everything or len(lacking) == len(notebooks)):
            raise ParameterError(_unknown(name, lacking, notebooks))
        for notebook, known in notebooks.items():
            if name in known:
                assigned[notebook][name] = converted(name, known[name].kind, value, notebook)
    return assigned


def _unknown(name: str, lacking: Sequence[str], notebooks: Mapping[str, Mapping[str, Parameter]]) -> str:
    known = sorted({each for parameters in notebooks.values() for each in parameters})
    if name in known:
        others = ", ".join(notebook for notebook in notebooks if notebook not in lacking)
        return f"parameter {name} is not declared by {', '.join(lacking)} (it is by {others}): select those alone."
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? Declared" if near else "declared"
    return f"parameter {name} is not declared by {', '.join(lacking)}: {hint} are {', '.join(known)}."


def read_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """`name: value` pairs of a YAML (or JSON) file with every value as text, so that no loader guesses at types.

    PyYAML reads 1e-4 as a text and 0010 as eight. Raises ParameterError.
    """
    import yaml

    try:
        found = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: not a readable file of parameters ({error}).") from None
    if not isinstance(found, dict):
        raise ParameterError(f"{path}: parameters are `name: value` lines, found {type(found).__name__}.")
    return found
