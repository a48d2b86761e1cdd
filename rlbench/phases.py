"""Where does the wall time go? Named phases, a stopwatch that gives each its own time.

    with PhaseClock("cpu") as clock:
        trainer.train()
    clock.seconds    # {"env": 1.2, "forward": 0.4, ..., "other": 0.1}

A trainer marks its phases with `with phase("env"): ...`. Without an open clock that costs a fraction of a microsecond
and does nothing. Times are exclusive: what runs in an inner phase counts for the inner one only, so the phases and
"other" (everything outside a phase) add up to the wall time exactly. Only the thread that opened the clock counts. Clocks
nest: what runs in the inner one's block counts for both.

With a CUDA device the clock synchronises at every border of a phase. Otherwise a phase would only show the time to
launch its kernels and the next synchronisation would be charged for them; but this takes away the overlap of host and
device, so a phased run is slower than a plain one. Shares are for finding the large phase, not for a speed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

import torch

from rlbench.timing import synchronize

OTHER = "other"


class _Nothing:
    """What `phase` hands out while no clock is open: one shared object, so that nothing is allocated."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class _Phase:
    __slots__ = ("clock", "name")

    def __init__(self, clock: PhaseClock, name: str) -> None:
        self.clock, self.name = clock, name

    def __enter__(self) -> None:
        self.clock._begin(self.name)

    def __exit__(self, *exc: object) -> None:
        self.clock._end()


class Handles(dict):
    """The context manager of each phase name of a clock, made once: `phase` is called often."""

    def __init__(self, make: Callable[[str], AbstractContextManager]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, name: str) -> AbstractContextManager:
        self[name] = made = self.make(name)
        return made


class Current(threading.local):
    """The innermost open clock of each thread."""

    clock: PhaseClock | None = None


NOTHING = _Nothing()
current = Current()


def phase(name: str) -> AbstractContextManager:
    """Context manager that counts its body as phase `name`; call it anew for each `with`, so that it finds the clock of now.

    A profile puts the names that it finds itself, such as "env" or "forward", into one row with yours. Each entry of "env"
    counts as a step, each of "optimizer" or "update" as an update.
    """
    clock = current.clock
    return NOTHING if clock is None else clock.handles[name]


class PhaseClock:
    """Context manager that collects the phases of this thread; entered again, it goes on adding.

    `device`: "cpu", or a CUDA device, which is then synchronised at every border. `now` returns nanoseconds.
    """

    finds = False  # whether phases are found that the code does not name
    blind = False  # whether it looks away from all but the ends of steps

    def __init__(self, device: str | torch.device = "cpu", *, now: Callable[[], int] = time.perf_counter_ns) -> None:
        self.device = torch.device(device)
        self.calls: dict[str, int] = {}
        self.handles = Handles(lambda name: _Phase(self, name))
        self._now = now
        self._nanoseconds: dict[str, int] = {OTHER: 0}
        self._stack: list[str] = []  # OTHER at the bottom while open
        self._border = 0
        self.outer: PhaseClock | None = None  # open around this one

    def __enter__(self) -> PhaseClock:
        if self._stack:
            raise RuntimeError("this PhaseClock is open already; make another for a block inside its own")
        synchronize(self.device)
        self.outer, current.clock = current.clock, self
        self._stack = [OTHER]
        self._border = self._now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._charge()
        self._stack = []
        current.clock = self.outer  # kept here too: a phase that is left after this clock still ends in the outer one

    @property
    def seconds(self) -> dict[str, float]:
        """Exclusive seconds of each phase in order of first entry, "other" last."""
        own = {name: spent / 1e9 for name, spent in self._nanoseconds.items() if name != OTHER}
        return {**own, OTHER: self._nanoseconds[OTHER] / 1e9}

    @property
    def total(self) -> float:
        """Wall seconds the clock was open, up to the last border."""
        return sum(self._nanoseconds.values()) / 1e9

    @property
    def shares(self) -> dict[str, float]:
        """Each phase's part of the total, adding up to 1; zeros before any time has passed."""
        total = self.total
        return {name: spent / total if total else 0.0 for name, spent in self.seconds.items()}

    def _charge(self) -> None:
        """Give the time since the last border to the phase now on top."""
        synchronize(self.device)
        now = self._now()
        self._nanoseconds[self._stack[-1]] += now - self._border
        self._border = now

    def _begin(self, name: str) -> None:
        if name == OTHER:
            raise ValueError(f"phase name {OTHER!r} is reserved for the time outside all phases; choose another")
        if self.outer is not None:
            self.outer._begin(name)
        self._charge()
        self._nanoseconds.setdefault(name, 0)
        self.calls[name] = self.calls.get(name, 0) + 1
        self._stack.append(name)

    def _end(self) -> None:
        if self.outer is not None:
            self.outer._end()
        if len(self._stack) > 1:  # else the clock was closed inside the phase: nothing left to charge
            self._charge()
            self._stack.pop()
