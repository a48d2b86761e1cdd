"""What a RecordingClock books time on, and the context managers that do it. Written to be quick: they stand in every loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

from rlbench.profiling.gaps import ENV, OPTIMIZER

if TYPE_CHECKING:
    from rlbench.profiling.clock import RecordingClock

LONG_NS = 20_000_000
CPU_EVERY = 8  # asking for the thread's processor time is a call of the kernel: one env step in so many


def border_of(phase: str) -> str:
    """What is over at the end of a phase: a step of an env, or else of an optimizer."""
    return ENV if phase == ENV else OPTIMIZER


class Account:
    """Nanoseconds of a phase or of a piece between phases, and how often it was entered.

    `steps` and `resets` are counted for the phases that are steps of an env or an optimizer; `cpu_ns` of `looked_ns` is the
    processor's share; `free` says whether a phase may be found unaided within it. `long_ns` of `ns` were spent in pieces of more
    than LONG_NS: told apart, since a rare pause must not be multiplied by what was not looked at.
    """

    __slots__ = ("calls", "cpu_ns", "free", "long_ns", "looked_ns", "name", "ns", "resets", "steps")

    def __init__(self, name: str, free: bool = False) -> None:
        self.name, self.free = name, free
        self.clear()

    def clear(self) -> None:
        self.ns = self.long_ns = self.calls = self.steps = self.resets = self.cpu_ns = self.looked_ns = 0

    def take(self, other: Account | None) -> None:
        """The numbers of another account, zeros without one."""
        self.clear()
        if other is not None:
            self.ns, self.long_ns, self.calls, self.steps = other.ns, other.long_ns, other.calls, other.steps
            self.resets, self.cpu_ns, self.looked_ns = other.resets, other.cpu_ns, other.looked_ns

    def copy(self) -> Account:
        made = Account(self.name, self.free)
        made.take(self)
        return made


class Timed:
    """A phase; without an account, a piece that is named later."""

    __slots__ = ("account", "clock", "name")

    def __init__(self, clock: RecordingClock, account: Account | None, name: str) -> None:
        self.clock, self.account, self.name = clock, account, name

    def __enter__(self) -> None:
        clock = self.clock
        now = clock.now()
        clock.top.ns += now - clock.border
        clock.border = now
        account = self.account
        if account is None:
            account = Account(self.name)
            clock.pieces.append(account)
        account.calls += 1
        clock.stack.append(account)
        clock.top = account

    def __exit__(self, *exc: object) -> None:
        clock = self.clock
        stack = clock.stack
        if len(stack) < 2:  # the clock was closed inside the phase
            return
        now = clock.now()
        clock.top.ns += now - clock.border
        clock.border = now
        stack.pop()
        if len(stack) > 1:
            clock.top = stack[-1]
        else:
            clock.at_bottom()


class Decisive(Timed):
    """A phase that says for certain what the loop is at: it names the pieces before it. At its end there may be a border."""

    __slots__ = ("border_of", "cpu", "is_border", "is_env", "opened")

    def __init__(self, clock: RecordingClock, account: Account, name: str) -> None:
        super().__init__(clock, account, name)
        self.is_env, self.is_border = account.name == ENV, name not in ("backward", "reset")
        self.border_of = border_of(account.name)
        self.cpu, self.opened = -1, 0

    def __enter__(self) -> None:
        clock, account = self.clock, self.account
        inner = account in clock.stack
        super().__enter__()
        if inner:
            return
        if clock.pieces:
            clock.resolve(account.name)
        if self.is_border:
            account.steps += 1
        elif self.is_env:
            account.resets += 1
        if self.is_env and account.calls % CPU_EVERY == 1:
            self.opened, self.cpu = clock.border, clock.cpu()

    def __exit__(self, *exc: object) -> None:
        clock, account = self.clock, self.account
        super().__exit__()
        if account in clock.stack or not clock.stack:
            return
        if self.cpu >= 0:
            account.cpu_ns += clock.cpu() - self.cpu
            account.looked_ns += clock.border - self.opened
            self.cpu = -1
        clock.last = account.name
        clock.pieces = [clock.top] if len(clock.stack) == 1 else []
        if self.is_border:
            clock.border_of = self.border_of
            clock.borders[self.border_of] += 1
            if clock.border >= clock.wake:
                clock.reach()


class Brief(Timed):
    """A decisive phase while the clock looks away: timed and counted as ever, but no pieces are begun or named."""

    __slots__ = ("border_of", "is_border")

    def __init__(self, clock: RecordingClock, account: Account, name: str) -> None:
        super().__init__(clock, account, name)
        self.is_border, self.border_of = name != "reset", border_of(account.name)

    def __enter__(self) -> None:
        clock, account = self.clock, self.account
        now = clock.now()
        passed = now - clock.border
        clock.top.ns += passed
        if passed > LONG_NS and clock.top.free:
            clock.top.long_ns += passed
        clock.border = now
        clock.stack.append(account)
        clock.top = account

    def __exit__(self, *exc: object) -> None:
        clock, account = self.clock, self.account
        stack = clock.stack
        if len(stack) < 2:
            return
        now = clock.now()
        account.ns += now - clock.border
        clock.border = now
        stack.pop()
        clock.top = stack[-1]
        if account in stack:
            return
        account.calls += 1
        clock.last = account.name
        if self.is_border:
            account.steps += 1
            clock.border_of = self.border_of
            clock.borders[self.border_of] += 1
            if now >= clock.wake:
                clock.reach()
        else:
            account.resets += 1


def briefly(clock: RecordingClock, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What `function` returns, timed as by `Brief`, below all phases. One frame for all of it: it stands in every step."""
    is_border = name != "reset"
    phase = name if is_border else ENV
    top, account = clock.top, clock.accounts.get(phase) or clock.account(phase)
    now = clock.now()
    passed = now - clock.border
    top.ns += passed
    if passed > LONG_NS:
        top.long_ns += passed
    clock.border = now
    clock.stack.append(account)
    clock.top = account
    try:
        return function(*args, **kwargs)
    finally:
        stack = clock.stack
        if len(stack) > 1:  # the clock was not closed inside the call
            now = clock.now()
            account.ns += now - clock.border
            clock.border = now
            stack.pop()
            clock.top = stack[-1]
            account.calls += 1
            clock.last = phase
            if is_border:
                account.steps += 1
                clock.border_of = phase
                clock.borders[phase] += 1
                if now >= clock.wake:
                    clock.reach()
            else:
                account.resets += 1


class Several:
    """One phase in several clocks, the outermost first: the innermost is left last, and it is the one that tells a border."""

    __slots__ = ("each",)

    def __init__(self, each: Sequence[AbstractContextManager]) -> None:
        self.each = each

    def __enter__(self) -> None:
        for one in self.each:
            one.__enter__()

    def __exit__(self, *exc: object) -> None:
        for one in self.each:
            one.__exit__(*exc)


class Ranged:
    """A phase that torch's profiler shows as a range."""

    __slots__ = ("inside", "name", "ranges")

    def __init__(self, inside: AbstractContextManager, name: str) -> None:
        self.inside, self.name = inside, name
        self.ranges: list[torch.profiler.record_function] = []

    def __enter__(self) -> None:
        self.inside.__enter__()
        self.ranges.append(torch.profiler.record_function(self.name))
        self.ranges[-1].__enter__()

    def __exit__(self, *exc: object) -> None:
        self.ranges.pop().__exit__(None, None, None)
        self.inside.__exit__(*exc)
