"""The passes of a profile. One at a time watches the run, so that nothing slow is in the times.

    clock     phases on the clock, the sampler beside it: the times and shares
    counting  synchronisations, operators, arithmetic: slow, counted, never timed
    trace     torch's profiler: operators by self time, copies, kernels
    threads   the same run with other numbers of torch threads, in turns

A pass is begun and ended at the border of a step. It is over when it has seen enough, or its time is up.
"""

from __future__ import annotations

import random
import time
from typing import Protocol

from rlbench.profiling.clock import PHASES_OF_THE_LOOP, RANGES, RecordingClock
from rlbench.profiling.counting import Counting
from rlbench.profiling.sampler import Sampler
from rlbench.profiling.thread_probe import ThreadProbing
from rlbench.profiling.trace import Tracing


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

    In a loop of a few hundred microseconds a step the clock itself would take some percent. So it looks at all phases for a while
    and then looks away for longer: envs and optimizers are timed all the same, the rest is split as it was while the clock
    looked. Lengths vary, so that they fall in step with nothing.
    """

    name = "clock"
    window_s, away = (0.02, 0.06), 2.0  # seconds it looks; how many times as long it looks away

    def __init__(self, clock: RecordingClock, sampler: Sampler, seconds: float, seed: int = 0) -> None:
        super().__init__(clock, seconds)
        self.sampler, self.lengths = sampler, random.Random(seed)
        self.looking = False

    def start(self) -> None:
        super().start()
        self.end = self.begun + self.limit
        self.sampler.start()
        self.clock.resume()
        self.looking = True
        self._next_window()
        self.watched_before = self.clock.watched_ns

    def border(self) -> None:
        """Called only once a window is over."""
        if not self.looking:
            self.clock.look()
        elif not self.clock.around:  # those cannot look away with this one
            self.clock.look_away()
        self.looking = not self.clock.blind
        self._next_window()

    def over(self) -> bool:
        return time.perf_counter() >= self.end

    def stop(self) -> bool:
        if self.clock.blind:
            self.clock.look()
        self.clock.pause()
        super().stop()
        self.spent = (self.clock.watched_ns - self.watched_before) / 1e9
        self.clock.wake = 0
        self.sampler.stop()
        return True

    def _next_window(self) -> None:
        length = self.lengths.uniform(*self.window_s) * (1.0 if self.looking else self.away)
        until = min(time.perf_counter() + length, self.end)
        self.clock.wake = until * 1e9


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
        self.clock.show(RANGES)

    def border(self) -> None:
        if self.clock.border_of == "env":
            self.tracing.step()

    def over(self) -> bool:
        return self.enough(self.steps_wanted, self.updates_wanted) or self.tracing.full or self.time_up()

    def stop(self) -> bool:
        self.clock.show(PHASES_OF_THE_LOOP)
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
