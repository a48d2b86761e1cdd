"""What a line of source does: the statement that holds it, the names it calls, the loop around it."""

from __future__ import annotations

import ast
import functools
import linecache
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from rlbench.profiling.frames import real_path
from rlbench.profiling.records import Place

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
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
        text: of the innermost statement that holds it; of a compound one, its head. Several on one line stand for one.
        calls: names that it calls, as written: "np.stack", "self.rows.append"; of a chain of calls all its parts,
            "frame.rolling.mean"; of a call on no name the rest, "join" of `", ".join(rows)`.
        assigned: names that it sets.
        loop: the innermost loop around it within its function; a comprehension on the line itself counts. None without one.
        function: the name of the function that holds it, "" at the top of a file; `function_calls` all names called in that.
            On the line of a `def` it is that function if the place lies in it: it is being entered.
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
    lines = linecache.getlines(real_path(place))
    tree = _parsed("".join(lines)) if lines else None
    return None if tree is None else _statement(tree, place.line, place.function)


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has warned of what it reads there when the code was loaded
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _statement(tree: ast.Module, line: int, running: str) -> Statement | None:
    """`running` is the name of the function that was seen on that line."""
    path = _path_to(tree, line)
    if len(path) < 2:
        return None
    together = [node for node in _statements(path[-2]) if _holds(node, line)]
    parts = [part for node in together for part in _own_parts(node)]
    function, inside = _around(path)
    entered = _entered(path[-1], parts, line, running)
    if entered is not None:
        function, inside = entered, []
        parts = [entered.body] if isinstance(entered, ast.Lambda) else []
    return Statement(
        text="; ".join(_head(node) for node in together),
        calls=_unique(name for part in parts for name in called(part)),
        assigned=_unique(name for part in parts for name in _assigned(part)),
        loop=_loop(inside, parts),
        function="" if function is None else getattr(function, "name", "<lambda>"),
        function_calls=() if function is None else _unique(called(function)),
        lines=(_first(together[0]), together[-1].end_lineno or together[-1].lineno),
    )


def _path_to(tree: ast.Module, line: int) -> list[ast.AST]:
    """The tree and the statements that hold the line, from the outermost to the innermost."""
    path: list[ast.AST] = [tree]
    while True:
        found = next((node for node in _statements(path[-1]) if _holds(node, line)), None)
        if found is None:
            return path
        path.append(found)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _statements(child)


def _first(node: ast.stmt) -> int:
    """Its first line; decorators stand before the line that Python gives a function."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])


def _holds(node: ast.stmt, line: int) -> bool:
    return _first(node) <= line <= (node.end_lineno or 0)


def _around(path: list[ast.AST]) -> tuple[ast.AST | None, list[ast.AST]]:
    """The function that holds the last statement of the path, and what of the path lies in it."""
    for i in reversed(range(len(path) - 1)):
        if isinstance(path[i], FUNCTIONS):
            return path[i], path[i + 1 :]
    return None, path


def _entered(statement: ast.AST, parts: list[ast.AST], line: int, running: str) -> ast.AST | None:
    """The function whose own line this is, rather than that of the code that makes it: a `def` at its start, a lambda."""
    if isinstance(statement, FUNCTIONS):
        return statement if statement.name == running else None
    lambdas = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Lambda))
    held = (node for node in lambdas if node.lineno <= line <= (node.end_lineno or 0))
    return next(held, None) if running == "<lambda>" else None


def _own_parts(statement: ast.AST) -> Iterator[ast.AST]:
    """What of a statement stands for itself: all of a simple one, the head of a compound one."""
    if isinstance(statement, FUNCTIONS):
        arguments = statement.args
        yield from statement.decorator_list
        yield from (default for default in (*arguments.defaults, *arguments.kw_defaults) if default is not None)
    elif isinstance(statement, ast.ClassDef):
        yield from (*statement.decorator_list, *statement.bases, *statement.keywords)
    elif any(True for _ in _statements(statement)):
        children = list(ast.iter_child_nodes(statement))
        yield from (child for child in children if isinstance(child, ast.expr | ast.withitem))
        yield from (case.guard for case in children if isinstance(case, ast.match_case) and case.guard is not None)
    else:
        yield statement


def _head(statement: ast.AST) -> str:
    return ast.unparse(statement).split("\n")[len(getattr(statement, "decorator_list", ()))]


def called(node: ast.AST) -> Iterator[str]:
    """Names of all calls in a node."""
    for child in ast.walk(node):
        if isinstance(child, ast.Call):
            name = dotted(child.func)
            if name:
                yield name


def dotted(node: ast.AST) -> str:
    """`a.b(…).c[…]` as "a.b.c"; what follows of one that does not begin with a name: "join" of `"x".join`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Subscript | ast.Await):
        return dotted(node.value)
    return ""


def _assigned(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id


def _loop(inside: list[ast.AST], parts: list[ast.AST]) -> Loop | None:
    for part in parts:
        for child in _without_lambdas(part):
            if isinstance(child, COMPREHENSIONS):
                first = child.generators[0]
                return Loop(ast.unparse(first.target), ast.unparse(first.iter), child.lineno, _unique(called(child)))
    for node, within in zip(reversed(inside), [None, *reversed(inside)], strict=False):
        if not isinstance(node, LOOPS) or within in node.orelse:  # `else` is no part of the turns
            continue
        if isinstance(node, ast.While):
            return Loop("", ast.unparse(node.test), node.lineno, _unique(called(node)))
        return Loop(ast.unparse(node.target), ast.unparse(node.iter), node.lineno, _unique(called(node)))
    return None


def _without_lambdas(node: ast.AST) -> Iterator[ast.AST]:
    """As ast.walk, but a lambda's body is another function."""
    waiting = [node]
    for each in waiting:
        yield each
        waiting.extend(child for child in ast.iter_child_nodes(each) if not isinstance(child, ast.Lambda))


def _unique(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
