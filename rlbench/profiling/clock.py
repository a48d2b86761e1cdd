"""The clock of a profile: phases that the code names, phases that are found unaided, and the gaps between those.

What lies between phases is named by its neighbours: see `gaps.py`. A phase costs the clock about a microsecond: one small object
for each name, no checks on the way, a pause by coming back to what was counted before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from rlbench.phases import NOTHING, OTHER, Handles, PhaseClock, current
from rlbench.profiling.accounts import LONG_NS, Account, Brief, Decisive, Ranged, Several, Timed
from rlbench.profiling.gaps import ACTING, ENV, FORWARD, GAP, LEARNING, OPTIMIZER, PYTHON, TO_SPLIT, names_of
from rlbench.profiling.totals import BORDERS, RESET, SHORT, UNSEEN, Totals, shown

DECISIVE = ("backward", RESET, *BORDERS)


class RecordingClock(PhaseClock):
    """A PhaseClock that resolves gaps, counts steps, tells borders, and can be paused.

    Attributes:
        on_border: called where a step of an env or of an optimizer is over, once `wake` (nanoseconds) has come; its own time is
            not counted.
        borders: how many there were so far, paused or not, by what was over: a step of an env, or of an optimizer; `border_of`
            says what the last one was.
        watched_ns: wall time by a stopwatch of its own, without pauses and what was done at borders: what phases must add up to.
        around: the recording clocks that are open around this one.
        owner: the session that reads it.
    """

    finds = True

    def __init__(self, *, now: Callable[[], int] = time.perf_counter_ns, cpu: Callable[[], int] = time.thread_time_ns):
        super().__init__("cpu", now=now)
        self.now, self.cpu = now, cpu
        self.on_border: Callable[[], None] | None = None
        self.wake: float = 0
        self.watched_ns, self._watching, self.at_border = 0, 0, False
        self.border_of, self.borders = "", {ENV: 0, OPTIMIZER: 0}
        self.around: list[RecordingClock] = []
        self.owner: object = None
        self.paused = self.blind = False
        self.memory: dict[tuple[str, int, str], str] = {}
        self.stack: list[Account] = []
        self.accounts: dict[str, Account] = {}
        self.last = ""  # the decisive call before
        self._begun: list[AbstractContextManager] = []  # by a plain clock within this one
        self.show()
        self.clear()

    def clear(self) -> None:
        """Forget what was counted, not what is open nor how gaps were named."""
        self._kept = Totals({})
        for account in self.accounts.values():
            account.clear()
        self.pieces: list[Account] = []  # since the last decisive call
        if len(self.stack) == 1:
            self.at_bottom()

    def show(self, ranges: bool = False) -> None:
        """What `phase` hands out from here on; with `ranges`, torch's profiler is told of them too."""
        self.handles = Handles((lambda name: Ranged(self._handle(name), shown(name))) if ranges else self._handle)

    def account(self, name: str) -> Account:
        if name not in self.accounts:
            self.accounts[name] = Account(name, free=name == PYTHON)
        return self.accounts[name]

    def _handle(self, name: str) -> AbstractContextManager:
        """What `with` takes for a phase, in this clock and those around it."""
        own = self._own(name)
        return own if self.outer is None else Several([self.outer.handles[name], own])

    def _own(self, name: str) -> AbstractContextManager:
        if name == OTHER:
            raise ValueError(f"phase name {OTHER!r} is reserved for the time outside all phases; choose another")
        if self.blind and name in SHORT:
            return NOTHING
        if name in (ACTING, LEARNING):
            return Timed(self, None, name)
        if name in DECISIVE:
            kind = Brief if self.blind else Decisive
            return kind(self, self.account(ENV if name == RESET else name), name)
        return Timed(self, self.account(name), name)

    def finding(self, name: str) -> AbstractContextManager:
        """A call that was found unaided begins: a phase, or nothing where the code around has said what it does. `name` may be
        "forward", whose pieces are named later, or "reset"."""
        if name == FORWARD:
            name = LEARNING if torch.is_grad_enabled() else ACTING
        if not self.around:
            return self.handles[name] if self.top.free else NOTHING
        return Several([clock._own(name) for clock in (*self.around, self) if clock.top.free])

    def __enter__(self) -> RecordingClock:
        if self.stack:
            raise RuntimeError("this clock is open already; make another for a block inside its own")
        self.outer, current.clock = current.clock, self
        self.around, clock = [], self.outer
        while clock is not None:
            self.around += [clock] if isinstance(clock, RecordingClock) else []
            clock = clock.outer
        self.stack = [Account(GAP, free=True)]
        self.show()
        self._watch(True)
        self.at_bottom()
        return self

    def __exit__(self, *exc: object) -> None:
        self.charge()
        self.stack = []
        current.clock = self.outer

    def charge(self) -> None:
        now = self.now()
        if self.stack and not self.at_border:
            self.top.ns += now - self.border
        self.border = now

    def at_bottom(self) -> None:
        """Below all phases a new piece begins."""
        self.stack[0] = gap = Account(GAP, free=True)
        self.top = self.stack[-1]
        self.pieces.append(gap)

    def look_away(self) -> None:
        """From here on only envs, optimizers and whole updates are timed; the rest is split as it was while the clock looked."""
        self.charge()
        self._drop_pieces(OTHER)
        python = self.account(PYTHON)
        self.blind, self._python = True, (python.ns, python.long_ns)
        self.show()

    def look(self) -> None:
        """Time everything again."""
        self.charge()
        self._drop_pieces(UNSEEN)
        python, unseen = self.account(PYTHON), self.account(UNSEEN)
        unseen.ns += python.ns - self._python[0]
        unseen.long_ns += python.long_ns - self._python[1]
        python.ns, python.long_ns = self._python
        self.blind = False
        self.show()

    def _drop_pieces(self, name: str) -> None:
        account = self.account(name)
        account.ns += sum(piece.ns for piece in self.pieces)
        account.long_ns += sum(piece.long_ns for piece in self.pieces)
        self.pieces = []
        self.at_bottom()

    def resolve(self, reached: str) -> None:
        """Name the pieces since the last decisive call, now that the next one is known."""
        if self.blind:
            self.account(UNSEEN).ns += sum(piece.ns for piece in self.pieces)
            self.pieces = []
            return
        for place, (name, piece) in enumerate(zip(names_of(self.last, reached, self.pieces), self.pieces, strict=True)):
            account = self.account(name)
            account.ns += piece.ns
            account.long_ns += piece.ns if piece.ns > LONG_NS else 0
            account.calls += piece.name != GAP
            self.memory[self.last, place, piece.name] = name
        self.pieces = []

    def reach(self) -> None:
        """A border: whatever is done there is not on the clock, nor on those around it."""
        if self.on_border and self.top.free and current.clock is self:
            chain = (self, *self.around)
            for clock in chain:
                clock._watch(False)
                clock.at_border = True
            try:
                self.on_border()
            finally:
                for clock in chain:
                    clock.at_border = False
                    clock._watch(True)
                    clock.border = clock.now()

    def phases_seen(self) -> int:
        """How many phases were entered so far."""
        return sum(account.calls for account in self.accounts.values())

    def _watch(self, on: bool) -> None:
        """Start or stop the stopwatch."""
        if self.paused or self.at_border:
            return
        if on:
            self._watching = self.border = self.now()
        else:
            self.charge()
            self.watched_ns += self.border - self._watching

    def pause(self) -> None:
        """Keep what was counted so far, in the clocks around this one too: something slow is about to watch."""
        for clock in (self, *self.around):
            if not clock.paused:
                clock._watch(False)
                clock._kept, clock.paused = clock._totals(), True

    def resume(self) -> None:
        """Go on from what was counted when it was paused."""
        for clock in (self, *self.around):
            if clock.paused:
                for name, account in clock.accounts.items():
                    account.take(clock._kept.get(name))
                clock.account(OTHER).take(clock._kept.get(OTHER))
                for piece in clock.pieces:
                    piece.ns = 0
                clock.paused = False
                clock._watch(True)
            clock.border = clock.now()

    def _totals(self) -> Totals:
        """Copies of all accounts; pieces not named yet count for what the loop's last turn says."""
        totals = {name: account.copy() for name, account in self.accounts.items()}
        for place, piece in enumerate(self.pieces):
            known = self.memory.get((self.last, place, piece.name), OTHER if piece.name == GAP else FORWARD)
            totals.setdefault(known, Account(known)).ns += piece.ns
        return Totals(totals)

    @property
    def totals(self) -> Totals:
        """What was counted so far."""
        return self._kept if self.paused else self._totals()

    @property
    def phase(self) -> str:
        """Where the thread is now: a phase's name or the best guess, "gap" without one, "" where it looks away."""
        top = self.top
        if self.blind and (top.free or top.name in SHORT):
            return ""
        if top.name not in (GAP, ACTING, LEARNING):
            return top.name
        known = self.memory.get((self.last, len(self.pieces) - 1, top.name), "")
        return (GAP if top.name == GAP else FORWARD) if known in ("", TO_SPLIT) else known

    def _begin(self, name: str) -> None:
        """A plain clock within this one begins a phase."""
        self._begun.append(self._handle(name))
        self._begun[-1].__enter__()

    def _end(self) -> None:
        self._begun.pop().__exit__(None, None, None)
