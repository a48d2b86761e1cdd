"""Hot lines: a thread that looks at the profiled thread's stack every few milliseconds.

It waits for the interpreter like any other thread, so Python is asked to hand over sooner while it runs. What it sees is a line
of Python: time in a C function is seen at the line that called it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import FrameType

from rlbench.profiling.frames import MACHINERY, forget_sources, function_phase, is_own, place_of, whose
from rlbench.profiling.records import HotLine

# How soon the interpreter is handed over; Python's own is 0.005. While the sampler waits, whatever lets go of the interpreter
# first, such as an operator of torch, is what it sees: the wait must be short against a step.
SWITCH_S = 0.00005
GAP = "gap"
# What lies between calls, named by the sampler and by the clock.
BETWEEN = ("store", "sample", "transfer", "python", "other")
Key = tuple[str, int, str]  # file, line, function


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
        count: samples so far, `phases` by phase. `gaps` counts those that fell into "gap" by what functions on the stack are
            named for, "" for none.
        cost_s: seconds that the sampler's thread worked.
    """

    def __init__(self, phase: Callable[[], str], interval_s: float = 0.01, thread_id: int | None = None) -> None:
        self.phase, self.interval_s = phase, interval_s
        self.thread_id = threading.get_ident() if thread_id is None else thread_id
        self.count, self.cost_s = 0, 0.0
        self.gaps: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()
        self._own: Counter[tuple[Key, str]] = Counter()
        self._total: Counter[tuple[Key, str]] = Counter()
        self._thread: threading.Thread | None = None
        self._done = threading.Event()
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
        try:
            thread.join()
        finally:
            _haste.end()

    def _run(self, done: threading.Event) -> None:
        while not done.wait(self.interval_s):
            start = time.thread_time()
            frame = sys._current_frames().get(self.thread_id)
            phase = self.phase()
            if frame is not None and phase:
                self.look(frame, phase)
            del frame
            self.cost_s += time.thread_time() - start

    def look(self, frame: FrameType | None, phase: str) -> None:
        """Book one sample."""
        stack = list(reader_lines(frame))
        named = [function_phase(key[2]) for key in stack]
        if phase == GAP:
            phase = next((name for name in named if name), "")
            self.gaps[phase] += 1
            phase = phase or "python"
        self.count += 1
        self.phases[phase] += 1
        if stack:
            self._own[stack[0], phase] += 1
        for key in set(stack):
            self._total[key, phase] += 1

    def lines(self, shares: Mapping[str, float] | None = None, limit: int = 60) -> tuple[HotLine, ...]:
        """The lines that were seen most, by their own share, then by the total.

        `shares`: of each phase by the clock. The sampler sees a phase that holds on to the interpreter less often than one that
        lets go of it; a sample then counts for the clock's share of its phase over the samples in that.
        """
        return hot_lines(self._own, self._total, self._weights(shares), limit)

    def _weights(self, shares: Mapping[str, float] | None) -> dict[str, float]:
        """What one sample of each phase counts for."""
        weights = dict.fromkeys(self.phases, 1 / self.count if self.count else 0.0)
        for group in (BETWEEN, *((name,) for name in self.phases if name not in BETWEEN)):
            seen, share = sum(self.phases[name] for name in group), sum((shares or {}).get(name, 0.0) for name in group)
            if seen and share:
                weights |= dict.fromkeys(group, share / seen)
        return weights


def reader_lines(frame: FrameType | None) -> Iterable[Key]:
    """The lines of a stack that are neither machinery nor the profiler's, deepest first."""
    while frame is not None:
        code = frame.f_code
        if not is_own(code.co_filename) and whose(code.co_filename) != MACHINERY:
            yield code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_name
        frame = frame.f_back


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
