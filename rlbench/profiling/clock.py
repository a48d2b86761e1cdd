"""The clock of a profile: phases that the code names, phases that are found unaided, and the gaps between those.

What lies between phases is named by its neighbours: see `gaps.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

from rlbench.phases import OTHER, PhaseClock, current
from rlbench.profiling.gaps import (
    ACTING,
    DECISIVE,
    ENV,
    FORWARD,
    GAP,
    LEARNING,
    OPTIMIZER,
    PYTHON,
    TO_SPLIT,
    names_of,
)

FREE = (OTHER, PYTHON)  # where a phase may be found unaided: everywhere else the code has said what it does
BORDERS = (ENV, OPTIMIZER, "update", "iterations")  # at the end of these a step is over, or a good part of one


class RecordingClock(PhaseClock):
    """A PhaseClock that resolves gaps, counts steps, tells borders, and can be paused.

    Attributes:
        steps, updates, episodes: calls of an env's `step`, of an optimizer's (or of a fused update), and of `reset`, while
            not paused.
        borders: how many there were so far, paused or not, by what was over: a step of an env, or of an optimizer; `border_of`
            says what the last one was.
        on_border: called where a step of an env or of an optimizer is over; its own time is not counted.
        cpu_ns: by phase, processor nanoseconds of the thread; measured for "env" alone, since asking costs.
        ranges: whether phases are shown to torch's profiler.
    """

    finds = True

    def __init__(self, *, now: Callable[[], int] = time.perf_counter_ns, cpu: Callable[[], int] = time.thread_time_ns):
        super().__init__("cpu", now=now)
        self._cpu = cpu
        self.on_border: Callable[[], None] | None = None
        self.border_of, self._stepping = "", True
        self.borders = {ENV: 0, OPTIMIZER: 0}
        self.ranges = self.paused = False
        self.around: list[RecordingClock] = []  # open around this one
        self.owner: object = None  # the session that reads it
        self._found: list[bool] = []  # of the calls found unaided that are open, which of them are phases
        self._ranges: list[torch.profiler.record_function] = []
        self._memory: dict[tuple[str, int, str], str] = {}
        self.clear()

    def clear(self) -> None:
        """Forget what was counted, not what is open nor how gaps were named."""
        self._nanoseconds, self.calls = {OTHER: 0}, {}
        self.cpu_ns: dict[str, int] = {}
        self.steps = self.updates = self.episodes = 0
        self._last = ""  # the decisive call before
        self._pieces: list[list] = []  # since then: [kind, nanoseconds]
        self._cpu_start = 0

    @property
    def phase(self) -> str:
        """Where the thread is now, readable from others: a phase's name or the best guess, "gap" where there is none."""
        stack = self._stack
        top = stack[-1] if stack else OTHER
        if top == PYTHON:
            return PYTHON
        if top not in (OTHER, ACTING, LEARNING):
            return top
        known = self._memory.get((self._last, len(self._pieces), GAP if top == OTHER else top), "")
        return (GAP if top == OTHER else FORWARD) if known in ("", TO_SPLIT) else known

    @property
    def free(self) -> bool:
        """Whether a phase may be found unaided here."""
        return bool(self._stack) and self._stack[-1] in FREE

    def pause(self) -> None:
        """Stop counting, in the clocks around this one too: something slow is about to watch."""
        for clock in (self, *self.around):
            clock._charge()
            clock.paused = True

    def resume(self) -> None:
        for clock in (self, *self.around):
            clock.paused = False
            clock._border = clock._now()

    def __enter__(self) -> RecordingClock:
        super().__enter__()
        self.around = []
        clock = self.outer
        while clock is not None:
            if isinstance(clock, RecordingClock):
                self.around.append(clock)
            clock = clock.outer
        return self

    def find(self, name: str, *, step: bool = True) -> None:
        """A call that was found unaided begins; `lose` ends it. Within a phase that is no part of the loop's own it counts for
        that. `name` may be "forward": the pieces are then named later."""
        for clock in self.around:
            clock._find(name, step)
        self._find(name, step)

    def _find(self, name: str, step: bool) -> None:
        opens = self.free
        self._found.append(opens)
        if opens:
            if name == FORWARD:
                name = LEARNING if torch.is_grad_enabled() else ACTING
            self._open(name, step)

    def lose(self) -> None:
        for clock in self.around:
            clock._lose()
        self._lose()

    def _lose(self) -> None:
        if self._found and self._found.pop():
            self._close()

    def _begin(self, name: str) -> None:
        if name == OTHER:
            super()._begin(name)  # refuses
        if self.outer is not None:
            self.outer._begin(name)
        self._open(name, True)

    def _end(self) -> None:
        if self.outer is not None:
            self.outer._end()
        self._close()

    def _open(self, name: str, step: bool) -> None:
        self._charge()
        if name in DECISIVE and name not in self._stack:
            self._resolve(name)
        if not self.paused:
            self._count(name, step)
        if name in BORDERS:
            self._stepping = step
        self._stack.append(name)
        if self.ranges:
            shown = FORWARD if name in (ACTING, LEARNING) else name
            self._ranges.append(torch.profiler.record_function(shown))
            self._ranges[-1].__enter__()

    def _count(self, name: str, step: bool) -> None:
        if name in (ACTING, LEARNING):
            return
        self._nanoseconds.setdefault(name, 0)
        self.calls[name] = self.calls.get(name, 0) + 1
        if name == ENV:
            self._cpu_start = self._cpu()
            if ENV not in self._stack:
                self.steps, self.episodes = self.steps + step, self.episodes + (not step)
        elif name in (OPTIMIZER, "update"):
            self.updates += step

    def _close(self) -> None:
        if len(self._stack) <= 1:  # the clock was closed inside the phase
            return
        self._charge()
        name = self._stack.pop()
        if self._ranges:
            self._ranges.pop().__exit__(None, None, None)
        if name in DECISIVE:
            self._last, self._pieces = name, []
            if name == ENV and not self.paused:
                self.cpu_ns[ENV] = self.cpu_ns.get(ENV, 0) + self._cpu() - self._cpu_start
        if name in BORDERS and self._stepping and self._stack[-1] in FREE:
            self._reach(name)

    def _reach(self, name: str) -> None:
        """A border: whatever is done there is not on the clock, nor on those around it."""
        self.border_of = ENV if name == ENV else OPTIMIZER
        self.borders[self.border_of] += 1
        if self.on_border is not None and current.clock is self:
            self.on_border()
            for clock in (self, *self.around):
                clock._border = clock._now()

    def _charge(self) -> None:
        now = self._now()
        if self._stack:
            top, spent = self._stack[-1], 0 if self.paused else now - self._border
            if top in (OTHER, ACTING, LEARNING):
                kind = GAP if top == OTHER else top
                if self._pieces and self._pieces[-1][0] == kind:
                    self._pieces[-1][1] += spent
                else:
                    self._pieces.append([kind, spent])
            else:
                self._nanoseconds[top] = self._nanoseconds.get(top, 0) + spent
        self._border = now

    def _resolve(self, reached: str) -> None:
        """Name the pieces since the last decisive call, now that the next one is known."""
        names = names_of(self._last, reached, self._pieces)
        for place, (name, (kind, spent)) in enumerate(zip(names, self._pieces, strict=True)):
            self._nanoseconds[name] = self._nanoseconds.get(name, 0) + spent
            self._memory[self._last, place, kind] = name
            if kind != GAP and not self.paused:
                self.calls[name] = self.calls.get(name, 0) + 1
        self._pieces = []

    def settled(self, seen: Mapping[str, int]) -> dict[str, float]:
        """Seconds by phase, "other" last. `seen`: how many samples fell into gaps, by what their functions are named for."""
        spent = dict(self._nanoseconds)
        for kind, left in self._pieces:  # after the last decisive call nothing is known
            spent[OTHER] += left if kind == GAP else 0
            if kind != GAP:
                spent[FORWARD] = spent.get(FORWARD, 0) + left
        joint = spent.pop(TO_SPLIT, 0)
        store, sample = seen.get("store", 0), seen.get("sample", 0)
        part = store / (store + sample) if store + sample else 0.0
        for name, amount in (("store", part * joint), ("sample", (1 - part) * joint)):
            if amount:
                spent[name] = spent.get(name, 0) + amount
        rest = spent.pop(OTHER)
        return {**{name: amount / 1e9 for name, amount in spent.items()}, OTHER: rest / 1e9}
