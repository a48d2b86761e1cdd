"""The counting pass: what runs, at which line, and what waits. Slow, so that it is short and nothing is timed in it.

Two modes see the calls of one thread. A torch-function mode sees what the reader writes, such as `float(t)` or `t[mask]`; some
of these never reach the dispatcher. A dispatch mode sees every operator, those of torch's own code too, such as the `.item()`
within `clip_grad_norm_`. What happens within a call that was counted belongs to it: printing a tensor is one synchronisation. A
read that fails is none.

On the CPU every tensor counts, since the run would wait there if it were on a GPU. Tensors that would stay on the host even
then cannot be told apart, but for those that came from `.cpu()` (`.to("cpu")`, where the line says so) and the step counters of
torch's optimizers. On CUDA only those on the device count, each with the time that its call took, and torch's sync debug mode
is heard beside it: it confirms them, and what it alone knows, such as a copy from the host's memory, is counted too. Explicit
waits such as `torch.cuda.synchronize()` are no calls of a tensor and are not seen.

What `torch.compile` has compiled runs uncompiled meanwhile, so that all of it is seen: its operators are more and smaller than
when it is compiled, and it is said in which phases. Captured graphs and native code are one call, or none.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from rlbench.profiling import mode_stacks
from rlbench.profiling.call_names import ARRAY, COPIED, FLOAT, INDEXING, goes_to, in_its_line, unnamed, what_is_read
from rlbench.profiling.counting_modes import Functions, Operators, caller, transforms
from rlbench.profiling.frames import nearest, place_of
from rlbench.profiling.host_copies import HostCopies, says_host
from rlbench.profiling.operators import Arithmetic
from rlbench.profiling.records import Counted, OpLine, Sync
from rlbench.profiling.sync_debug import SyncDebug
from rlbench.profiling.uncompiled import Uncompiled, is_compiled

Key = tuple[str, int, str]  # file, line, function


class Counting:
    """Counts between `start` and `stop`, which may be repeated: it goes on adding.

    Args:
        phase: where the thread is now.
        device: what the code computes on.

    Attributes:
        counter: env steps and updates so far, where a call hides its steps.
    """

    def __init__(self, phase: Callable[[], str], device: str | torch.device = "cpu") -> None:
        self.phase, self.device = phase, torch.device(device)
        self.on_device = self.device.type == "cuda"
        self.steps = self.updates = 0
        self.counter: Callable[[], tuple[int, int]] | None = None
        self._by_counter = 0, 0
        self.uncompiled: set[str] = set()  # phases
        self.seconds = 0.0
        self.syncs: Counter[tuple[Key, str, str]] = Counter()  # by line, call and phase
        self.waits: Counter[tuple[Key, str, str]] = Counter()  # seconds
        self.confirmed: Counter[tuple[Key, str, str]] = Counter()  # by torch
        self.operators: Counter[tuple[Key, str]] = Counter()  # by line and phase
        self.arithmetic = Arithmetic()
        self.within = self.printing = False  # a call that was counted is not over
        self._modes = Functions(self), Operators(self)
        self._running = False
        self._uncompiled = Uncompiled()
        self._debug = SyncDebug() if self.on_device else None
        self._booked = 0  # of what torch's debug mode was heard to say
        self.copies = HostCopies()
        self._arrays: tuple[int, int, set[int]] = 0, 0, set()  # frame, instruction, tensors

    def start(self) -> None:
        if self._running:
            return
        self._uncompiled.start()
        if self._debug is not None:
            self._debug.start()
        self._thread = threading.get_ident()
        self._in_inference, self._transforms = torch.is_inference_mode_enabled(), transforms()
        mode_stacks.put_functions(self._modes[0])
        mode_stacks.put_operators(self._modes[1])
        self._running = True
        self._read_counter(-1)
        self._begun = time.perf_counter()

    def stop(self) -> bool:
        """End it, and say whether that was possible: not within an inference mode or a transform of torch.func that was not there
        at its start, nor on another thread, nor in the midst of a compiled function or of a call that is being counted."""
        if not self._running:
            return True
        self.mend()
        # Both put torch's dispatch keys back to what they were at their start: a dispatch mode that was begun outside must not be
        # ended within, or torch would go on looking for it.
        around = torch.is_inference_mode_enabled(), transforms()
        here = threading.get_ident() == self._thread
        same = here and around == (self._in_inference, self._transforms)
        if not (same and self._seen() and self._uncompiled.stop()):
            return False
        self.seconds += time.perf_counter() - self._begun
        mode_stacks.take_operators(self._modes[1])
        mode_stacks.take_functions(self._modes[0])
        self._running = False
        self._read_counter(1)
        if self._debug is not None:
            self._debug.stop()
        return True

    def _seen(self) -> bool:
        """Whether both modes are in their places, and none at work."""
        functions, operators = self._modes
        return mode_stacks.has_functions(functions) and mode_stacks.has_operators(operators)

    def mend(self) -> None:
        """Begun within an inference mode that is over: its end has made torch forget the dispatch mode, which is begun again."""
        operators = self._modes[1]
        if self._running and self._in_inference and not torch.is_inference_mode_enabled():
            if mode_stacks.take_operators(operators):
                mode_stacks.put_operators(operators)
            self._in_inference = False

    def step(self) -> None:
        self.steps += 1

    def update(self) -> None:
        self.updates += 1

    def counted(self, seconds_per_step: float | None) -> Counted:
        """What was counted. `seconds_per_step`: what a step takes when nobody counts, None if unknown."""
        steps = max(self.seen[0] or self.seen[1], 1)
        usual = steps * seconds_per_step if seconds_per_step else None
        return Counted(
            *self.seen,
            self.seconds,
            self.seconds / usual if usual else None,
            tuple(self._sync(booked, count, steps) for booked, count in self.syncs.most_common()),
            tuple(
                OpLine(place_of(*key), phase, count, count / steps)
                for (key, phase), count in self.operators.most_common()
            ),
            self.arithmetic.products(),
            self.arithmetic.work(),
            tuple(sorted(self.uncompiled)),
        )

    @property
    def seen(self) -> tuple[int, int]:
        """Steps and updates: as they were told, or by the counter where no single step was told of."""
        return self._by_counter if self._by_counter[0] > 0 and not self.steps else (self.steps, self.updates)

    def _read_counter(self, sign: int) -> None:
        if self.counter is not None:
            told = zip(self._by_counter, self.counter(), strict=True)
            self._by_counter = tuple(before + sign * now for before, now in told)

    def _sync(self, booked: tuple[Key, str, str], count: int, steps: int) -> Sync:
        key, call, phase = booked
        wait = self.waits[booked] / count if self.on_device else None
        confirmed = self.confirmed[booked] if self.on_device else None
        return Sync(place_of(*key), call, phase, count, count / steps, wait, confirmed)

    @property
    def heard(self) -> int:
        """Waits that torch's debug mode has told of."""
        return self._debug.heard if self._debug is not None else 0

    def waits_for(self, function: Any, args: tuple, kwargs: dict) -> bool:
        """Whether reading what that call reads waits here, or would on a device."""
        tensors = what_is_read(function, args, kwargs)
        if not self.on_device and function in (Tensor.cpu, Tensor.to):
            return bool(tensors)  # brought over again
        return bool(tensors) and (all if function in INDEXING else any)(map(self._far, tensors))

    def _far(self, tensor: Tensor) -> bool:
        return tensor.device.type == "cuda" if self.on_device else tensor not in self.copies

    def book_sync(
        self, call: str, seconds: float, heard: int, function: Any = None, args: tuple[Any, ...] = ()
    ) -> None:
        """A call that waited, and all that torch said of it, which has told of `heard` waits before."""
        frame = self._frame()
        if call in (ARRAY, FLOAT) and self._seen_by_array(function, args, frame):
            return
        key = key_of(frame)
        booked = key, in_its_line(call, place_of(*key).source), self.phase()
        self.syncs[booked] += 1
        self.waits[booked] += seconds
        self.confirmed[booked] += self.heard > max(heard, self._booked)
        self._booked = self.heard

    def book_unnamed(self, call: str, seconds: float, heard: int) -> None:
        """A call of which only torch knew that it waits, if it has said so."""
        if self.heard > max(heard, self._booked):
            self.book_sync(unnamed(call), seconds, heard)

    def book_operator(self, operator: Any, args: tuple, kwargs: dict, result: Any) -> None:
        phase = self.phase()
        if self.arithmetic.book(operator, args, kwargs, result, phase):
            self.operators[key_of(self._frame()), phase] += 1
            if phase not in self.uncompiled and is_compiled(sys._getframe(1)):
                self.uncompiled.add(phase)

    def follow(self, function: Any, args: tuple, kwargs: dict, result: Any) -> None:
        """Keep in mind what was brought to the host. On the CPU `.to("cpu")` is a wait only where the line says "cpu": a device
        in a variable would be another one on a GPU."""
        if self.on_device:
            return
        if function is Tensor.cpu:
            self.copies.add(result)
        elif (device := goes_to(function, args, kwargs)) is not None and device.type == "cpu":
            if not says_host(self._frame()):
                self.copies.forget(result)
            elif self.waits_for(function, args, kwargs):
                self.book_sync(COPIED, 0.0, self.heard)
                self.copies.add(result)

    def _seen_by_array(self, function: Any, args: tuple, frame: FrameType | None) -> bool:
        """NumPy asks each tensor of a list for an array first and then for its number: one read."""
        if frame is None or not args:
            return False
        at, instruction, seen = self._arrays
        same = (at, instruction) == (id(frame), frame.f_lasti)
        if function is Tensor.__float__:
            return same and id(args[0]) in seen
        if function is Tensor.__array__:
            self._arrays = id(frame), frame.f_lasti, {id(args[0]), *(seen if same else ())}
        return False

    def _frame(self) -> FrameType | None:
        """The nearest that is neither machinery nor the profiler's; a thread of torch works for the one that counts."""
        frame = _outside(sys._getframe(1))
        if frame is None and threading.get_ident() != self._thread:
            frame = _outside(sys._current_frames().get(self._thread))
        return frame


def _outside(frame: FrameType | None) -> FrameType | None:
    frame = nearest(frame)
    while frame is not None and (called := caller(frame)) is not frame:
        frame = nearest(called)
    return frame


def key_of(frame: FrameType | None) -> Key:
    return ("", 0, "") if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
