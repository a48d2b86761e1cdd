"""Hot lines: a thread that looks at the profiled thread's stack every few milliseconds.

It waits for the interpreter like any other thread, so Python is asked to hand over sooner while it runs. What it sees is a line
of Python: time in a C function is seen at the line that called it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import CodeType, FrameType

from rlbench.profiling.frames import MACHINERY, forget_sources, function_phase, is_own, place_of, whose
from rlbench.profiling.records import HotLine

# How soon the interpreter is handed over; Python's own is 0.005. While the sampler waits, whatever lets go of the interpreter
# first, such as an operator of torch, is what it sees: the wait must be short against a step.
SWITCH_S = 0.00005
UNIT_S = 0.01  # a sample weighs 1 for so long that it stands for
GAP = "gap"
# What lies between calls, named by the sampler and by the clock.
BETWEEN = ("store", "sample", "transfer", "python", "other")
Key = tuple[str, int, str]  # file, line, function
Stack = tuple[tuple[CodeType, int | None], ...]  # deepest first, with lines


class _Haste:
    """Python hands the interpreter over sooner while any sampler runs, in whatever order they start and stop."""

    def __init__(self) -> None:
        self.lock, self.users = threading.Lock(), 0

    def begin(self) -> None:
        with self.lock:
            if not self.users:
                self.before = sys.getswitchinterval()
                sys.setswitchinterval(min(self.before, SWITCH_S))
                self.set = sys.getswitchinterval()  # in whole microseconds
            self.users += 1

    def end(self) -> None:
        with self.lock:
            self.users -= 1
            if not self.users and sys.getswitchinterval() == self.set:  # else the reader has set another since
                sys.setswitchinterval(self.before)


_haste = _Haste()


class Sampler:
    """Samples one thread's stack between `start` and `stop`, which may be repeated: it goes on adding.

    Args:
        phase: where that thread is; "" while nobody wants to know.
        interval_s: between two looks.
        thread_id: the thread's; the one that makes the sampler where left out.

    Attributes:
        count: samples so far.
        cost_s: seconds that the sampler's thread worked.
    """

    def __init__(self, phase: Callable[[], str], interval_s: float = 0.01, thread_id: int | None = None) -> None:
        self.phase, self.interval_s = phase, interval_s
        self.thread_id = threading.get_ident() if thread_id is None else thread_id
        self.count, self.cost_s = 0, 0.0
        self._seen: Counter[tuple[str, Stack]] = Counter()  # what the samples weigh, by phase and stack
        self._thread: threading.Thread | None = None
        self._done, self._changed = threading.Event(), threading.Event()
        forget_sources()

    def start(self) -> None:
        if self._thread is not None:
            return
        self._done = threading.Event()
        thread = threading.Thread(target=self._run, args=(self._done,), name="rlbench sampler", daemon=True)
        _haste.begin()
        try:
            thread.start()
        except BaseException:
            _haste.end()
            raise
        self._thread = thread

    def stop(self) -> None:
        if self._thread is None:
            return
        thread, self._thread = self._thread, None
        self._done.set()
        self._changed.set()
        try:
            thread.join()
        finally:
            _haste.end()

    def every(self, seconds: float) -> None:
        """Look so often from now on."""
        if seconds != self.interval_s:
            self.interval_s = seconds
            self._changed.set()

    def _run(self, done: threading.Event) -> None:
        while not done.is_set():
            if self._changed.wait(self.interval_s):
                self._changed.clear()
                continue
            start = time.thread_time()
            frame = sys._current_frames().get(self.thread_id)
            phase = self.phase()
            if frame is not None and phase:
                self.look(frame, phase, max(1, round(self.interval_s / UNIT_S)))
            del frame
            self.cost_s += time.thread_time() - start

    def look(self, frame: FrameType | None, phase: str, weight: int = 1) -> None:
        """Book one sample; one that stands for a longer time weighs more."""
        stack: list[tuple[CodeType, int]] = []
        while frame is not None:
            stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        self._seen[phase, tuple(stack)] += weight
        self.count += 1

    @property
    def phases(self) -> Counter[str]:
        """What the samples weigh, by phase; in a gap by what a function on the stack is named for, else Python."""
        found: Counter[str] = Counter()
        for (phase, stack), weight in self._seen.items():
            found[self._phase(phase, stack)] += weight
        return found

    @property
    def gaps(self) -> Counter[str]:
        """Of the samples that fell into a gap, what they weigh by what functions on the stack are named for, "" for none."""
        found: Counter[str] = Counter()
        for (phase, stack), weight in self._seen.items():
            if phase == GAP:
                found[named_for(stack)] += weight
        return found

    def _phase(self, phase: str, stack: Stack) -> str:
        return (named_for(stack) or "python") if phase == GAP else phase

    def lines(self, shares: Mapping[str, float] | None = None, limit: int = 60) -> tuple[HotLine, ...]:
        """The lines that were seen most, by their own share, then by the total.

        `shares`: of each phase by the clock. The sampler sees a phase that holds on to the interpreter less often than one that
        lets go of it; a sample then counts for the clock's share of its phase over the samples in that.
        """
        own: Counter[tuple[Key, str]] = Counter()
        total: Counter[tuple[Key, str]] = Counter()
        for (phase, stack), weight in self._seen.items():
            lines, phase = reader_lines(stack), self._phase(phase, stack)
            if lines:
                own[lines[0], phase] += weight
            for key in set(lines):
                total[key, phase] += weight
        return hot_lines(own, total, self._weights(shares), limit)

    def _weights(self, shares: Mapping[str, float] | None) -> dict[str, float]:
        """What one sample of each phase counts for."""
        phases = self.phases
        weights = dict.fromkeys(phases, 1 / max(1, phases.total()))
        for group in (BETWEEN, *((name,) for name in phases if name not in BETWEEN)):
            seen, share = sum(phases[name] for name in group), sum((shares or {}).get(name, 0.0) for name in group)
            if seen and share:
                weights |= dict.fromkeys(group, share / seen)
        return weights


def reader_lines(stack: Stack) -> list[Key]:
    """The lines of a stack that are neither machinery nor the profiler's, deepest first."""
    return [
        (code.co_filename, line or code.co_firstlineno, code.co_name)
        for code, line in stack
        if not is_own(code.co_filename) and whose(code.co_filename) != MACHINERY
    ]


def named_for(stack: Stack) -> str:
    """The phase that the deepest function is named for, of those that are named for any."""
    named = (function_phase(function) for _, _, function in reader_lines(stack))
    return next((name for name in named if name), "")


def by_phase(samples: Mapping[tuple[Key, str], int], weights: Mapping[str, float]) -> dict[Key, dict[str, float]]:
    """Of each line its share in each phase."""
    by_line: dict[Key, dict[str, float]] = {}
    for (key, phase), seen in samples.items():
        by_line.setdefault(key, {})[phase] = seen * weights[phase]
    return by_line


def hot_lines(
    own: Mapping[tuple[Key, str], int], total: Mapping[tuple[Key, str], int], weights: Mapping[str, float], limit: int
) -> tuple[HotLine, ...]:
    """From samples by line and phase to shares; the phase of a line is the one with most of it."""
    by_line = by_phase(total, weights)
    selves: dict[Key, float] = dict.fromkeys(by_line, 0.0)
    for (key, phase), seen in own.items():
        selves[key] += seen * weights[phase]
    ordered = sorted(by_line, key=lambda key: (-selves[key], -sum(by_line[key].values()), key))
    return tuple(
        HotLine(
            place_of(*key),
            selves[key],
            sum(by_line[key].values()),
            max(by_line[key], key=by_line[key].__getitem__),
        )
        for key in ordered[:limit]
    )
