"""The run itself, tried with other numbers of torch threads in turns."""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable

import torch

from rlbench.probe import Probe
from rlbench.profiling.records import ThreadProbe

BLOCK_BORDERS, BLOCK_S = 10, 0.15  # at least, of a block
BLOCKS, BLOCKS_OF_ONE_KIND = 4, 10  # with each number
STEP, UPDATE = "step", "update"


def physical_cores(probe: Probe | None = None, cpus: Iterable[int] | None = None) -> int:
    """Physical cores that this process may use: two hardware threads of one core count once, a container's limit holds.

    Args:
        cpus: numbers of the logical processors it may run on; those of its affinity if None.
    """
    probe = probe or Probe()
    if cpus is None:
        cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(probe.cpu_count() or 1)
    where = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    cores = {probe.read(where.format(number)) or str(number) for number in cpus}
    return max(1, math.floor(min(len(cores), probe.quota_cores() or math.inf)))


class ThreadProbing:
    """Blocks of the run with different numbers of threads, interleaved; call `step` and `update` where one of them is over.

    The interval up to the first border of a block is discarded: in it the pool of threads is built anew. An interval belongs to
    what ends it, a step of the env or an update. Where updates come now and then, a block with many of them must not stand
    against one with few; so seconds a step are the median block's seconds of a step, and of an update times the updates a step
    that the whole probe saw.

    Where the run sets another number of threads on its own, the probe ends and leaves that number alone.

    Args:
        candidates: numbers of threads beside the number that is set at `start`; 1 and the physical cores if None.
        clock: seconds.
    """

    def __init__(
        self, candidates: Iterable[int] | None = None, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.cores = physical_cores()
        self.candidates = tuple(candidates) if candidates is not None else (1, self.cores)
        if any(number < 1 for number in self.candidates):
            raise ValueError(f"numbers of threads {self.candidates}: each must be at least 1")
        self.clock = clock
        self.shuffle = random.Random(1).shuffle
        self.blocks: dict[int, list[_Block]] = {}
        self.seen = {STEP: 0, UPDATE: 0}
        self.running = self.left_alone = False

    def start(self) -> None:
        """Take the number of threads that is set now as the run's own. A second time goes on."""
        self.now = self.set_to = torch.get_num_threads()
        for number in dict.fromkeys((self.now, *self.candidates)):
            self.blocks.setdefault(number, [])
        self.running = True
        self.queue: list[int] = []
        self._next_block()

    def stop(self) -> None:
        """Put the number of threads back."""
        if self.running:
            self._switch(self.now)
        self.running = False

    def step(self) -> None:
        """A step of the env is over."""
        self._border(STEP)

    def update(self) -> None:
        """A step of the optimizer is over."""
        self._border(UPDATE)

    @property
    def done(self) -> bool:
        """Whether every number has its blocks, with steps and updates among them if the run has both."""
        if self.left_alone or len(self.blocks) == 1:
            return True
        return any(self.seen.values()) and all(self._enough(number) for number in self.blocks)

    def probe(self) -> ThreadProbe | None:
        """Seconds a step by number of threads; a step of the optimizer where there is no env. None unless the run's own number
        and another one were measured."""
        kinds = [kind for kind in (STEP, UPDATE) if self.seen[kind]]
        if not kinds:
            return None
        each = {STEP: 1.0, UPDATE: self.seen[UPDATE] / self.seen[STEP] if self.seen[STEP] else 1.0}
        seconds = {}
        for number in sorted(self.blocks):
            medians = {kind: self._median(number, kind) for kind in kinds}
            if None not in medians.values():
                seconds[number] = sum(each[kind] * medians[kind] for kind in kinds)
        if self.now not in seconds or len(seconds) < 2:
            return None
        return ThreadProbe(self.now, self.cores, seconds)

    def _median(self, number: int, kind: str) -> float | None:
        found = [block.seconds[kind] / block.count[kind] for block in self.blocks[number] if block.count[kind]]
        return statistics.median(found) if found else None

    def _enough(self, number: int) -> bool:
        """A run that has shown one kind of border alone may be in the midst of a long rollout: it is given longer."""
        kinds = [kind for kind in (STEP, UPDATE) if self.seen[kind]]
        wanted = BLOCKS if len(kinds) == 2 else BLOCKS_OF_ONE_KIND
        found = [sum(block.count[kind] > 0 for block in self.blocks[number]) for kind in kinds]
        return min(found, default=0) >= wanted

    def _border(self, kind: str) -> None:
        if not self.running or self.left_alone:
            return
        now = self.clock()
        if torch.get_num_threads() != self.set_to:
            self.left_alone, self.running = True, False
            return
        if self.from_s is None:
            self.block.begun = now
        else:
            self.block.add(kind, now - self.from_s)
            self.seen[kind] += 1
        self.from_s = now
        if self.block.full(now):
            self.blocks[self.set_to].append(self.block)
            self._next_block()

    def _next_block(self) -> None:
        """Rounds of all numbers in random order, so that no rhythm of the run falls in with them."""
        if not self.queue:
            self.queue = list(self.blocks)
            self.shuffle(self.queue)
        self._switch(self.queue.pop())
        self.block, self.from_s = _Block(), None

    def _switch(self, number: int) -> None:
        if number != torch.get_num_threads():
            torch.set_num_threads(number)
        self.set_to = number


class _Block:
    """Seconds and number of the intervals that ended in a step, and in an update."""

    def __init__(self) -> None:
        self.begun = 0.0
        self.seconds = {STEP: 0.0, UPDATE: 0.0}
        self.count = {STEP: 0, UPDATE: 0}

    def add(self, kind: str, seconds: float) -> None:
        self.seconds[kind] += seconds
        self.count[kind] += 1

    def full(self, now: float) -> bool:
        return max(self.count.values()) >= BLOCK_BORDERS and now - self.begun >= BLOCK_S
