"""What a notebook's code takes from rlbench is there, and is called as it can be: seen without running a cell.

A notebook is run whole only once in a while; a function that was renamed or lost an argument is found here in a second.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

PACKAGE = "rlbench"
MISSING = object()


def imported(tree: ast.Module) -> Iterator[tuple[str, str, Any]]:
    """Of each import from rlbench: the name it binds, its full name, and what it is, `MISSING` where there is no such thing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    found = _module(alias.name)
                    bound = found if alias.asname else _module(PACKAGE)
                    yield alias.asname or PACKAGE, alias.name, MISSING if found is MISSING else bound
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            for alias in node.names:
                found = getattr(_module(node.module), alias.name, MISSING)
                name = f"{node.module}.{alias.name}"
                yield alias.asname or alias.name, name, _module(name) if found is MISSING else found


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return MISSING


def unknown(tree: ast.Module, known: dict[str, Any]) -> Iterator[str]:
    """Attributes that are not there, and calls that a function cannot take.

    Args:
        known: things by the names that they are bound to, as `imported` gives them.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            base = _resolved(node.value, known)
            if (inspect.ismodule(base) or inspect.isclass(base)) and not hasattr(base, node.attr):
                yield f"{ast.unparse(node)}: there is no such name"
        elif isinstance(node, ast.Call):
            refused = _refused(node, _resolved(node.func, known))
            if refused:
                yield f"{ast.unparse(node.func)}(...): {refused}"


def _resolved(node: ast.expr, known: dict[str, Any]) -> Any:
    """What a name or a chain of attributes stands for; MISSING where that is not known before it runs."""
    if isinstance(node, ast.Name):
        return known.get(node.id, MISSING)
    if isinstance(node, ast.Attribute):
        base = _resolved(node.value, known)
        return getattr(base, node.attr, MISSING) if inspect.ismodule(base) or inspect.isclass(base) else MISSING
    return MISSING


def _refused(call: ast.Call, function: Any) -> str:
    """Why these arguments do not fit; empty where they do, or where some are spread with a star."""
    spread = any(isinstance(arg, ast.Starred) for arg in call.args)
    if spread or not (inspect.isfunction(function) or inspect.isclass(function) or inspect.ismethod(function)):
        return ""
    named = {keyword.arg: None for keyword in call.keywords if keyword.arg}
    try:
        bind = inspect.signature(function)
        (bind.bind_partial if len(named) < len(call.keywords) else bind.bind)(*call.args, **named)
    except TypeError as error:
        return str(error)
    except ValueError:  # it has no signature that could be read
        pass
    return ""
