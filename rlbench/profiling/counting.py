"""The counting pass: what runs, at which line, and what waits. Slow, so that it is short and nothing is timed in it.

Two modes see the calls of one thread. A torch-function mode sees what the reader writes, such as `float(t)` or `t[mask]`; some of
these never reach the dispatcher. A dispatch mode sees every operator, those of torch's own code too, such as the `.item()` within
an optimizer. What happens within a call that was counted belongs to it: printing a tensor is one synchronisation.

On the CPU every tensor counts, since the run would wait there if it were on a GPU; tensors that would stay on the host even
then cannot be told apart. On CUDA only those on the device do, each with the time that its call took, and torch's own sync
debug mode counts beside it.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from rlbench.profiling.call_names import OPERATORS, in_its_line, sync_name
from rlbench.profiling.frames import nearest, place_of
from rlbench.profiling.operators import Arithmetic
from rlbench.profiling.records import Counted, OpLine, Sync

Key = tuple[str, int, str]  # file, line, function


class Counting:
    """Counts between `start` and `stop`, which may be repeated: it goes on adding.

    Args:
        phase: where the thread is now.
        device: what the code computes on.
    """

    def __init__(self, phase: Callable[[], str], device: str | torch.device = "cpu") -> None:
        self.phase, self.device = phase, torch.device(device)
        self.steps = self.updates = self.confirmed = 0
        self.seconds = 0.0
        self.syncs: Counter[tuple[Key, str, str]] = Counter()  # by line, call and phase
        self.waits: Counter[tuple[Key, str, str]] = Counter()  # seconds
        self.operators: Counter[tuple[Key, str]] = Counter()  # by line and phase
        self.arithmetic = Arithmetic()
        self.inside = 0  # calls that were counted and are not over
        self._modes: tuple[_Functions, _Operators] | None = None

    def start(self) -> None:
        if self._modes is not None:
            return
        self._warn()
        self._in_inference = torch.is_inference_mode_enabled()
        self._modes = _Functions(self), _Operators(self)
        for mode in self._modes:
            mode.__enter__()
        self._begun = time.perf_counter()

    def stop(self) -> bool:
        """End it, and say whether that was possible: not while a mode of the reader's lies on top, nor within an inference mode
        that was not there at its start."""
        if self._modes is None:
            return True
        functions, operators = self._modes
        on_top = torch.overrides._get_current_function_mode(), torch.utils._python_dispatch._get_current_dispatch_mode()
        # Inference mode puts torch's dispatch keys back to what they were at its start: a dispatch mode that was begun outside
        # must not be ended within, or torch would go on looking for it.
        if on_top != (functions, operators) or torch.is_inference_mode_enabled() != self._in_inference:
            return False
        self.seconds += time.perf_counter() - self._begun
        operators.__exit__(None, None, None)
        functions.__exit__(None, None, None)
        self._modes = None
        self._unwarn()
        return True

    def step(self) -> None:
        self.steps += 1

    def update(self) -> None:
        self.updates += 1

    def counted(self, seconds_per_step: float | None) -> Counted:
        """What was counted. `seconds_per_step`: what a step takes when nobody counts, None if unknown."""
        steps = max(self.steps or self.updates, 1)
        usual = steps * seconds_per_step if seconds_per_step else None
        syncs = [
            Sync(
                place,
                call,
                phase,
                count,
                count / steps,
                self.waits[key, call, phase] / count if self.on_device else None,
            )
            for ((key, call, phase), count), place in (
                (item, place_of(*item[0][0])) for item in self.syncs.most_common()
            )
        ]
        lines = [
            OpLine(place_of(*key), phase, count, count / steps) for (key, phase), count in self.operators.most_common()
        ]
        return Counted(
            self.steps,
            self.updates,
            self.seconds,
            self.seconds / usual if usual else None,
            tuple(syncs),
            tuple(lines),
            self.arithmetic.products(),
            self.arithmetic.work(),
        )

    @property
    def on_device(self) -> bool:
        return self.device.type == "cuda"

    def waits_for(self, value: Any) -> bool:
        """Whether reading that tensor waits here, or would on a device."""
        return isinstance(value, Tensor) and (not self.on_device or value.device.type == "cuda")

    def book_sync(self, call: str, seconds: float) -> None:
        key = reader_line()
        place = place_of(*key)
        booked = key, in_its_line(call, place.source), self.phase()
        self.syncs[booked] += 1
        self.waits[booked] += seconds

    def _warn(self) -> None:
        if self.on_device:
            self._debug = torch.cuda.get_sync_debug_mode()
            self._caught = warnings.catch_warnings(record=True)
            self._seen = self._caught.__enter__()
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")

    def _unwarn(self) -> None:
        if self.on_device:
            torch.cuda.set_sync_debug_mode(self._debug)
            self._caught.__exit__(None, None, None)
            synchronising = [w for w in self._seen if "synchroniz" in str(w.message)]
            self.confirmed += len(synchronising)
            for other in self._seen:
                if other not in synchronising:
                    warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


def reader_line() -> Key:
    """Where the call comes from: the nearest line that is neither machinery nor the profiler's."""
    frame = nearest(sys._getframe(1))
    return ("", 0, "") if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


class _Functions(TorchFunctionMode):
    """What the reader writes."""

    def __init__(self, counting: Counting) -> None:
        super().__init__()
        self.counting = counting

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        counting = self.counting
        name = None if counting.inside else sync_name(function, args, kwargs)
        if name is None or not counting.waits_for(args[0] if args else next(iter(kwargs.values()), None)):
            return function(*args, **kwargs)
        counting.inside += 1
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            counting.inside -= 1
            counting.book_sync(name, time.perf_counter() - start)


class _Operators(TorchDispatchMode):
    """What the dispatcher runs."""

    def __init__(self, counting: Counting) -> None:
        super().__init__()
        self.counting = counting

    def __torch_dispatch__(self, operator: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        counting = self.counting
        start = time.perf_counter()
        result = operator(*args, **kwargs)
        if counting.inside:
            return result
        name = OPERATORS.get(operator._schema.name)
        if name is not None and args and counting.waits_for(args[0]):
            counting.book_sync(name, time.perf_counter() - start)
        phase = counting.phase()
        if counting.arithmetic.book(operator, args, kwargs, result, phase):
            counting.operators[reader_line(), phase] += 1
        return result
