"""The sampled lines by function, and which of them a rule has explained already."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rlbench.profiling.evidence import Evidence
from rlbench.profiling.records import HotLine, Place
from rlbench.profiling.source import Statement, describe

# Functions that hold a whole loop or an interface: only the statement counts, not all that happens in them.
WHOLE = {
    *(
        "<module>",
        "main",
        "train",
        "learn",
        "run",
        "loop",
        "fit",
        "update",
        "step",
        "reset",
        "forward",
        "__call__",
        "_train",
    ),
    *(
        "train_step",
        "learn_step",
        "optimize",
        "optimise",
        "optimize_model",
        "optimise_model",
        "replay",
        "collect_rollouts",
    ),
}
COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")
LEAST_SHARE = 0.02  # of all samples: below it a line is not worth a sentence


@dataclass(frozen=True)
class Scope:
    """A function, or one statement of a function that holds the whole loop.

    Attributes:
        share: of all samples with it on the stack.
        phase: where most of these fell.
        places: its lines that were seen most.
        statements: what stands on its lines; `shares` of all samples with that line on the stack.
    """

    function: str
    share: float
    phase: str
    places: tuple[Place, ...]
    statements: tuple[Statement, ...]
    shares: tuple[float, ...]

    @property
    def calls(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(call for statement in self.statements for call in statement.calls))

    @property
    def function_calls(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(call for statement in self.statements for call in statement.function_calls))

    @property
    def loops(self) -> bool:
        return any(statement.loop is not None for statement in self.statements)


class Scopes:
    """All scopes of a run, largest first."""

    def __init__(self, evidence: Evidence) -> None:
        self.claimed: set[tuple[str, str]] = set()
        self.all = sorted(_scopes(evidence.lines), key=lambda scope: -scope.share)

    def where(self, wanted: Callable[[Scope], bool]) -> list[Scope]:
        """Scopes that are wanted, worth a sentence and not explained yet."""
        return [s for s in self.all if s.share >= LEAST_SHARE and self._key(s) not in self.claimed and wanted(s)]

    def with_callers(self, scope: Scope) -> Scope:
        """The scope with all of the statements that call it by name, and so with what is done for its arguments and result."""
        calling = [
            statement_share
            for other in self.all
            if other.function != scope.function
            for statement, statement_share in zip(other.statements, other.shares, strict=True)
            if called(statement.calls, (scope.function,))
        ]
        return replace(scope, share=min(1.0, max(scope.share, sum(calling))))

    def resetting(self, scope: Scope) -> Scope:
        """The scope with all else that the `reset` that calls it does with what it got."""
        resets = [s for s in self.all if s.function == "reset" and not called(s.calls, ("reset",))]
        files = {s.places[0].file for s in resets if called(s.calls, (scope.function,)) or s is scope}
        mine = [s for s in resets if s.places[0].file in files]
        for other in mine:
            self.claim(replace(other, share=1.0))
        return replace(scope, share=min(1.0, max(scope.share, sum(s.share for s in mine))))

    def claim(self, scope: Scope) -> None:
        """Explained: this scope, and the functions that it calls by name, and those that they call."""
        if self._key(scope) in self.claimed:
            return
        self.claimed.add(self._key(scope))
        for call in scope.function_calls:
            for other in self.all:
                if other.function == call.rsplit(".", 1)[-1] and other.share <= scope.share:
                    self.claim(other)

    @staticmethod
    def _key(scope: Scope) -> tuple[str, str]:
        return scope.places[0].file, f"{scope.function}:{scope.statements[0].lines if scope.function in WHOLE else ''}"


def _scopes(lines: Iterable[HotLine]) -> list[Scope]:
    """Lines of one function together; of a function that holds the loop, those of one statement."""
    groups: dict[tuple, list[tuple[HotLine, Statement]]] = {}
    for line in lines:
        statement = describe(line.place)
        if statement is None or line.place.function in COMPREHENSIONS:
            continue
        key = (line.place.file, line.place.function, statement.lines if line.place.function in WHOLE else None)
        groups.setdefault(key, []).append((line, statement))
    return [_scope(group) for group in groups.values()]


def _scope(group: list[tuple[HotLine, Statement]]) -> Scope:
    group = sorted(group, key=lambda pair: -pair[0].total)
    lines = [line for line, _ in group]
    phases: dict[str, float] = {}
    for line in lines:
        phases[line.phase] = phases.get(line.phase, 0.0) + line.total
    return Scope(
        function=lines[0].place.function,
        share=min(1.0, sum(line.total for line in lines)),  # one line of a function is on the stack at a time
        phase=max(phases, key=lambda phase: phases[phase]),
        places=tuple(line.place for line in lines[:4]),
        statements=tuple(statement for _, statement in group),
        shares=tuple(line.total for line in lines),
    )


def only(scope: Scope, wanted: Callable[[Statement], bool]) -> Scope:
    """The scope, its places those whose statements are wanted first."""
    order = sorted(
        range(len(scope.places)), key=lambda i: not (i < len(scope.statements) and wanted(scope.statements[i]))
    )
    return replace(scope, places=tuple(scope.places[i] for i in order))


def called(calls: Iterable[str], names: Iterable[str]) -> list[str]:
    """Of dotted names those whose last part is one of `names`."""
    wanted = set(names)
    return [call for call in calls if call.rsplit(".", 1)[-1] in wanted]
