"""What a line of source does: the statement that holds it, the names it calls, the loop around it."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from dataclasses import dataclass

from rlbench.profiling.frames import real_path
from rlbench.profiling.records import Place

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
LOOPS = ast.For | ast.AsyncFor | ast.While
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Loop:
    """A `for` or a comprehension: `target` in `iterable`, as text; for a `while` the target is "" and the iterable its test.
    `calls` are the names called in it."""

    target: str
    iterable: str
    line: int
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Statement:
    """What stands on a line.

    Attributes:
        text: of the innermost statement that holds it; of a compound one, its head.
        calls: names that it calls, as written: "np.stack", "self.rows.append"; of a chain of calls all its parts,
            "frame.rolling.mean".
        assigned: names that it sets.
        loop: the innermost loop around it within its function; a comprehension on the line itself counts. None without one.
        function: the name of the function that holds it, "" at the top of a file; `function_calls` all names called in that.
        lines: first and last line of the statement.
    """

    text: str
    calls: tuple[str, ...]
    assigned: tuple[str, ...]
    loop: Loop | None
    function: str
    function_calls: tuple[str, ...]
    lines: tuple[int, int]


def describe(place: Place) -> Statement | None:
    """The statement at a place; None where there is no source, or none that Python can read."""
    tree = _tree(place.file)
    return None if tree is None else _statement(tree, place.line)


def _tree(file: str) -> ast.Module | None:
    lines = linecache.getlines(real_path(file))
    return _parsed("".join(lines)) if lines else None


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _statement(tree: ast.Module, line: int) -> Statement | None:
    path = _path_to(tree, line)
    if len(path) < 2:
        return None
    statement = path[-1]
    holders = [node for node in path[:-1] if isinstance(node, FUNCTIONS)]
    function = holders[-1] if holders else None
    inside = path[path.index(function) + 1 :] if function is not None else path
    parts = list(_own_parts(statement, line))
    return Statement(
        text=_head(statement),
        calls=_unique(name for part in parts for name in called(part)),
        assigned=_unique(name for part in parts for name in _assigned(part)),
        loop=_loop(inside, parts),
        function=getattr(function, "name", "") if function is not None else "",
        function_calls=_unique(called(function)) if function is not None else (),
        lines=(statement.lineno, statement.end_lineno or statement.lineno),
    )


def _path_to(tree: ast.Module, line: int) -> list[ast.AST]:
    """The tree and the statements that hold the line, from the outermost to the innermost."""
    path: list[ast.AST] = [tree]
    while True:
        found = next((node for node in _statements(path[-1]) if node.lineno <= line <= (node.end_lineno or 0)), None)
        if found is None:
            return path
        path.append(found)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _statements(child)


def _own_parts(statement: ast.AST, line: int) -> Iterator[ast.AST]:
    """What of a statement stands for itself: all of a simple one, the head of a compound one."""
    if isinstance(statement, FUNCTIONS | ast.ClassDef):
        yield from statement.decorator_list
    elif any(True for _ in _statements(statement)):
        yield from (child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr | ast.withitem))
    else:
        yield statement


def _head(statement: ast.AST) -> str:
    return ast.unparse(statement).split("\n", 1)[0]


def called(node: ast.AST) -> Iterator[str]:
    """Names of all calls in a node."""
    for child in ast.walk(node):
        if isinstance(child, ast.Call):
            name = dotted(child.func)
            if name:
                yield name


def dotted(node: ast.AST) -> str:
    """`a.b(…).c[…]` as "a.b.c"; "" where it does not begin with a name, such as "x".join."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    return ""


def _assigned(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id


def _loop(inside: list[ast.AST], parts: list[ast.AST]) -> Loop | None:
    for part in parts:
        for child in ast.walk(part):
            if isinstance(child, COMPREHENSIONS):
                first = child.generators[0]
                return Loop(ast.unparse(first.target), ast.unparse(first.iter), child.lineno, _unique(called(child)))
    for node in reversed(inside):
        if isinstance(node, ast.While):
            return Loop("", ast.unparse(node.test), node.lineno, _unique(called(node)))
        if isinstance(node, LOOPS):
            return Loop(ast.unparse(node.target), ast.unparse(node.iter), node.lineno, _unique(called(node)))
    return None


def _unique(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
