"""One profile from its first to its last moment: which pass watches when, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

from rlbench.phases import current, phase
from rlbench.profiling.clock import RecordingClock
from rlbench.profiling.counting import Counting
from rlbench.profiling.device_use import DeviceSampler
from rlbench.profiling.found import WRAPPERS
from rlbench.profiling.passes import ClockPass, CountingPass, Pass, ThreadsPass, TracePass, WarmUpPass
from rlbench.profiling.sampler import Sampler
from rlbench.profiling.trace import Tracing
from rlbench.profiling.windows import Windows

# In a loop a phase costs several times what it costs alone: caches are cold, and where phases are found, each call within a call
# is asked for too.
NAMED, FOUND = 3.0, 16.0
FIRST_S = 1.0  # on the clock before the short passes, which a script that is over soon must not miss


@dataclass(frozen=True)
class Plan:
    """Seconds of each pass, at most; 0 leaves a pass out.

    `warm_up` counts nothing; `first` is a clock pass before all others; `middle` is one before the trace, whose end may take
    seconds of reading where a step has thousands of operators.
    """

    warm_up: float
    first: float
    counting: float
    trace: float
    threads: float
    middle: float = 0.0

    @classmethod
    def within(cls, seconds: float, threads: bool = True) -> Plan:
        """For a run that is profiled for so long: half of it and more on the clock."""
        return cls(
            warm_up=0.3 * seconds,
            first=min(0.2 * seconds, FIRST_S),
            counting=0.1 * seconds,
            trace=0.1 * seconds,
            threads=min(0.15 * seconds, 6.0) * threads,
            middle=0.3 * seconds,
        )

    @classmethod
    def block(cls, threads_s: float = 0.0) -> Plan:
        """For a block that may be over soon: the clock runs from the first moment, the short passes come early."""
        return cls(0.0, 0.05, 1.0, 1.0, threads_s)


class Session:
    """Open around the code that is profiled, on one thread.

    Args:
        device: the device that the code uses.
        plan: how long each pass is.
        deadline_s: seconds after which `over` is called at the next border.
        find: look for phases that the code does not name; ours names all, and does not pay for the search.
        windows: of an earlier session on the same training, whose looking was paid for then.
        counter: env steps and updates so far, where the caller counts better than the clock can; calls of `step` otherwise.
    """

    def __init__(
        self,
        device: torch.device,
        plan: Plan,
        *,
        deadline_s: float | None = None,
        over: Callable[[], None] | None = None,
        counter: Callable[[], tuple[int, int]] | None = None,
        find: bool = True,
        namespaces: tuple[dict[str, Any], ...] = (),
        windows: Windows | None = None,
    ) -> None:
        self.device, self.plan, self.deadline_s, self.over = device, plan, deadline_s, over
        self.counter, self.find, self.namespaces, self.windows = counter, find, namespaces, windows
        self.clock = RecordingClock()
        self.sampler = self._new_sampler()
        self.counting, self.tracing = Counting(lambda: self.clock.phase, device), Tracing(device)
        self.device_sampler = DeviceSampler(device)
        self.passes: list[Pass] = []  # those that were begun, in order
        self.steps = self.updates = 0  # by `counter`, in clock passes
        self.notes: list[str] = []
        self.error = ""

    def __enter__(self) -> Session:
        outer = current.clock
        self.around = getattr(outer, "owner", None)
        with unwatched():
            self.clock_cost_s = price_of_a_phase()
        self.windows = self.windows or Windows(self.clock_cost_s * (FOUND if self.find else NAMED))
        if self.find:
            WRAPPERS.install(*self.namespaces)
        if self.around is not None:
            self.around.yield_to_inner()
        self.clock.__enter__()
        self.clock.owner, self.clock.on_border = self, self.border
        if self.around is not None:
            self.notes.append("A profile around this one was open: it stands still where this one counts or traces.")
        self.device_sampler.start()
        self.begun = time.perf_counter()
        self.deadline = float("inf") if self.deadline_s is None else self.begun + self.deadline_s
        self.clock.pause()
        self.clock.clear()  # what it saw until here is none of the block's
        self._course = self._passes()
        self._next()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_pass(final=True)
        self.wall_s = time.perf_counter() - self.begun
        self.clock.on_border = None
        self.clock.__exit__(kind, error, trace)
        for clock in self.clock.around:
            clock.resume()
        self.device_sampler.stop()
        if self.find:
            WRAPPERS.remove()
        if error is not None:
            self.error = f"{type(error).__name__}: {error}"

    def _new_sampler(self) -> Sampler:
        return Sampler(lambda: self.clock.phase)

    def border(self) -> None:
        """At the end of a step of an env or of an optimizer."""
        self.running.border()
        if self.running.over() and self._stop_pass():
            self._next()
        if time.perf_counter() >= self.deadline and self.over is not None:
            self.over()

    def yield_to_inner(self) -> None:
        """A profile within this one begins: of the passes only the clock goes on."""
        if self.running.name != "clock" and self._stop_pass():
            self._start(self._clock_pass(float("inf")))
        if isinstance(self.running, ClockPass):
            self.running.look()

    def clock_passes(self) -> list[ClockPass]:
        return [each for each in self.passes if isinstance(each, ClockPass)]

    def of(self, name: str) -> Any:
        """The pass of that name that ended last, or None."""
        return next((each for each in reversed(self.passes) if each.name == name and each.spent), None)

    def _passes(self) -> Iterator[Pass]:
        plan, clock = self.plan, self.clock
        if plan.warm_up:
            yield self._clock_pass(plan.warm_up, WarmUpPass)
            self._forget()
        yield self._clock_pass(plan.first)
        if plan.counting:
            yield CountingPass(clock, self.counting, plan.counting)
        if plan.threads:
            yield ThreadsPass(clock, plan.threads)
        if plan.middle:
            yield self._clock_pass(plan.middle)
        if plan.trace:
            yield TracePass(clock, self.tracing, plan.trace)
        yield self._clock_pass(float("inf"))

    def _clock_pass(self, seconds: float, kind: type[ClockPass] = ClockPass) -> ClockPass:
        return kind(self.clock, self.sampler, self.windows, seconds, WRAPPERS if self.find else None)

    def _forget(self) -> None:
        """The warm-up is over and was none of the usual course."""
        self.clock.clear()
        self.sampler = self._new_sampler()
        self.passes.clear()
        self.steps = self.updates = 0

    def _next(self) -> None:
        self._start(next(self._course))

    def _start(self, chosen: Pass) -> None:
        self.running = chosen
        self.passes.append(chosen)
        if self.counter is not None and isinstance(chosen, ClockPass):
            self._from = self.counter()
        chosen.start()

    def _stop_pass(self, final: bool = False) -> bool:
        """End the running pass; at the very end even where its modes are not on top any more."""
        stopped = self.running.stop()
        if stopped and self.counter is not None and isinstance(self.running, ClockPass):
            now = self.counter()
            self.steps, self.updates = self.steps + now[0] - self._from[0], self.updates + now[1] - self._from[1]
        if final and not stopped:
            self.notes.append(
                f"The {self.running.name} pass could not be ended cleanly: the block left a torch mode open."
            )
        return stopped or final


@contextmanager
def unwatched() -> Iterator[None]:
    """What is done here, such as timing layers for a report, is no part of a profile that is open around it."""
    clock = current.clock
    was_on = isinstance(clock, RecordingClock) and not clock.paused
    if was_on:
        clock.pause()
    current.clock = None
    try:
        yield
    finally:
        current.clock = clock
        if was_on:
            clock.resume()


def price_of_a_phase(calls: int = 2000) -> float:
    """Seconds that the clock takes for one phase, measured now on a clock of its own."""
    with RecordingClock():
        start = time.perf_counter()
        for _ in range(calls):
            with phase("price"):
                pass
        return (time.perf_counter() - start) / calls
