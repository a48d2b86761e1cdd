"""The passes of a profile. One at a time watches the run, so that nothing slow is in the times.

    clock     phases on the clock, the sampler beside it: the times and shares
    counting  synchronisations, operators, arithmetic: slow, counted, never timed
    trace     torch's profiler: operators by self time, copies, kernels
    threads   the same run with other numbers of torch threads, in turns

A pass is begun and ended at the border of a step. It is over when it has seen enough, or its time is up.
"""

from __future__ import annotations

import time
from typing import Protocol

from rlbench.profiling.clock import RecordingClock
from rlbench.profiling.compiling import compile_seconds
from rlbench.profiling.counting import Counting
from rlbench.profiling.found import Wrappers
from rlbench.profiling.sampler import Sampler
from rlbench.profiling.thread_probe import ThreadProbing
from rlbench.profiling.trace import Tracing
from rlbench.profiling.windows import ALLOWANCE_S, Windows


class Pass(Protocol):
    """What the session asks of a pass."""

    name: str

    def start(self) -> None: ...

    def border(self) -> None:
        """A step of an env or of an optimizer is over."""

    def over(self) -> bool:
        """Whether it has seen enough."""

    def stop(self) -> bool:
        """End it; False where that is not possible at this border."""


class _Timed:
    """A pass with a limit in seconds, and how much it has seen: `steps` of envs, `updates` of optimizers."""

    def __init__(self, clock: RecordingClock, seconds: float) -> None:
        self.clock, self.limit = clock, seconds
        self.spent, self.steps, self.updates = 0.0, 0, 0

    def start(self) -> None:
        self.begun = time.perf_counter()
        self.first = self.clock.borders.copy()

    def border(self) -> None:
        pass

    def time_up(self) -> bool:
        return time.perf_counter() - self.begun >= self.limit

    def enough(self, steps: int, updates: int) -> bool:
        """Whether so many were seen; where there is no env, updates alone."""
        seen = self.here()
        return (seen[0] >= steps or not self.clock.borders["env"]) and seen[1] >= updates

    def here(self) -> tuple[int, int]:
        """Steps and updates since the pass was begun the last time."""
        return self.clock.borders["env"] - self.first["env"], self.clock.borders["optimizer"] - self.first["optimizer"]

    def stop(self) -> bool:
        self.spent += time.perf_counter() - self.begun
        steps, updates = self.here()
        self.steps, self.updates = self.steps + steps, self.updates + updates
        return True


class ClockPass(_Timed):
    """Until its time is up. The clock counts in no other pass.

    It looks at all phases or looks away, as `windows` allows: envs and optimizers are timed all the same, the rest is split as it
    was while the clock looked. A clock within others never looks away, since those cannot do so with it.

    Args:
        calls: of modules, where they are found unaided: left alone while the clock looks away.
    """

    name = "clock"
    # Seconds between two samples: at first and in windows; where it looks at all times; while it looks away.
    often_s, seldom_s, away_s = 0.01, 0.02, 0.1

    def __init__(
        self, clock: RecordingClock, sampler: Sampler, windows: Windows, seconds: float, calls: Wrappers | None = None
    ) -> None:
        super().__init__(clock, seconds)
        self.sampler, self.windows, self.calls = sampler, windows, calls
        self.away = False  # whether it has looked away
        self.compile_s = 0.0  # of its time, what torch.compile took

    def start(self) -> None:
        super().start()
        self.end = self.begun + self.limit
        self.sampler.start()
        self.clock.resume()
        self.watched_before, self.compiled_before = self.clock.watched_ns, compile_seconds()
        self._open(self.windows.look_s())

    def border(self) -> None:
        """Called only once a window is over."""
        self._close()
        away_s = 0.0 if self.clock.blind or self.clock.around else self.windows.away_s()
        if away_s:
            self.look_away()
        else:
            self.look()
        self._open(away_s or self.windows.look_s())

    def look_away(self) -> None:
        self.away = True
        self.clock.look_away()
        if self.calls is not None:
            self.calls.rest()
        self.sampler.every(self.away_s)

    def look(self) -> None:
        """Look at all phases again."""
        if self.clock.blind:
            if self.calls is not None:
                self.calls.wake()
            self.clock.look()
        often = self.away or self.windows.all_s < ALLOWANCE_S
        self.sampler.every(self.often_s if often else self.seldom_s)

    def over(self) -> bool:
        return time.perf_counter() >= self.end

    def stop(self) -> bool:
        self._close()
        self.look()
        self.clock.pause()
        super().stop()
        self.spent = (self.clock.watched_ns - self.watched_before) / 1e9
        self.compile_s = compile_seconds() - self.compiled_before
        self.clock.wake = 0
        self.sampler.stop()
        return True

    def _open(self, seconds: float) -> None:
        self.opened = time.perf_counter()
        self.clock.wake = min(self.opened + seconds, self.end) * 1e9
        self.phases_before = self.clock.phases_seen()

    def _close(self) -> None:
        seconds, phases = time.perf_counter() - self.opened, self.clock.phases_seen() - self.phases_before
        if self.clock.blind:
            self.windows.looked_away(seconds, phases)
        else:
            self.windows.looked(seconds, phases)


class WarmUpPass(ClockPass):
    """Until updates are seen: before, a loop fills its replay and shows nothing of its usual course.

    It is on the clock like any other time, for a run that ends before; else what was seen is thrown away.
    """

    name = "warm-up"
    updates_wanted = 3

    def over(self) -> bool:
        return self.here()[1] >= self.updates_wanted or self.time_up()


class CountingPass(_Timed):
    """Some steps, and some updates where there are any."""

    name = "counting"
    steps_wanted, updates_wanted = 12, 4

    def __init__(self, clock: RecordingClock, counting: Counting, seconds: float) -> None:
        super().__init__(clock, seconds)
        self.counting = counting

    def start(self) -> None:
        super().start()
        self.counting.start()

    def border(self) -> None:
        self.counting.update() if self.clock.border_of == "optimizer" else self.counting.step()

    def over(self) -> bool:
        return self.enough(self.steps_wanted, self.updates_wanted) or self.time_up()

    def stop(self) -> bool:
        return self.counting.stop() and super().stop()


class TracePass(_Timed):
    """Some steps and updates under torch's profiler, or as many as fit the file."""

    name = "trace"
    steps_wanted, updates_wanted = 50, 20

    def __init__(self, clock: RecordingClock, tracing: Tracing, seconds: float) -> None:
        super().__init__(clock, seconds)
        self.tracing = tracing

    def start(self) -> None:
        super().start()
        self.tracing.start()
        self.clock.show(ranges=True)

    def border(self) -> None:
        if self.clock.border_of == "env":
            self.tracing.step()

    def over(self) -> bool:
        return self.enough(self.steps_wanted, self.updates_wanted) or self.tracing.full or self.time_up()

    def stop(self) -> bool:
        self.clock.show()
        self.tracing.stop()
        return super().stop()


class ThreadsPass(_Timed):
    """Until the probe has its blocks."""

    name = "threads"

    def __init__(self, clock: RecordingClock, seconds: float) -> None:
        super().__init__(clock, seconds)
        self.probing = ThreadProbing()

    def start(self) -> None:
        super().start()
        self.probing.start()

    def border(self) -> None:
        self.probing.update() if self.clock.border_of == "optimizer" else self.probing.step()

    def over(self) -> bool:
        return self.probing.done or self.time_up()

    def stop(self) -> bool:
        self.probing.stop()
        return super().stop()
