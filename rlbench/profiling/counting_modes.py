"""The two modes of the counting pass: they see the calls of the thread that pushed them, and of its backward on a device.

Torch hands a thread's modes on to its own threads that run backward on a device, so that backward is counted there as on the CPU.
"""

from __future__ import annotations

import functools
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import HigherOrderOperator
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from rlbench.profiling.call_names import NOTHING, PRINTED, STEP_COUNTER, operator_name, sync_name

if TYPE_CHECKING:
    from rlbench.profiling.counting import Counting


class Functions(TorchFunctionMode):
    """What the reader writes."""

    def __init__(self, counting: Counting) -> None:
        super().__init__()
        self.counting = counting

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        counting = self.counting
        counting.mend()
        if counting.within:
            return function(*args, **kwargs)
        frame = caller(sys._getframe(1))
        of_optimizer = frame is not None and frame.f_code is STEP_COUNTER
        name = NOTHING if of_optimizer else sync_name(function, args, kwargs)
        waits = bool(name) and counting.waits_for(function, args, kwargs)
        begun, heard = time.perf_counter(), counting.heard
        counting.within, counting.printing = waits or name == NOTHING, name == PRINTED
        try:
            result = function(*args, **kwargs)
        finally:
            counting.within = counting.printing = False
        if waits:
            counting.book_sync(name, time.perf_counter() - begun, heard, function, args)
        else:
            counting.book_unnamed(getattr(function, "__name__", str(function)), time.perf_counter() - begun, heard)
        counting.follow(function, args, kwargs, result)
        return result


class Operators(TorchDispatchMode):
    """What the dispatcher runs."""

    supports_higher_order_operators = True

    def __init__(self, counting: Counting) -> None:
        super().__init__()
        self.counting = counting

    def __torch_dispatch__(self, operator: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(operator, HigherOrderOperator):
            return operator(*args, **kwargs)
        if not types and is_composite(operator):  # in inference mode they come whole
            with self:
                return operator.decompose(*args, **kwargs)
        counting = self.counting
        begun, heard = time.perf_counter(), counting.heard
        on_host = counting.copies.all_here(args)
        result = operator(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            if on_host and isinstance(result, torch.Tensor):
                counting.copies.add(result)
            if not counting.within:
                name = operator_name(operator, args, kwargs)
                if name is not None and counting.waits_for(operator, args, kwargs):
                    counting.book_sync(name, time.perf_counter() - begun, heard)
                else:
                    counting.book_unnamed(operator._schema.name, time.perf_counter() - begun, heard)
            if not counting.printing:
                counting.book_operator(operator, args, kwargs, result)
        return result


@functools.cache
def is_composite(operator: Any) -> bool:
    """Whether it is made of other operators, and no formula is known for the whole."""
    return operator._overloadpacket not in flop_registry and operator._can_decompose()


def caller(frame: FrameType | None) -> FrameType | None:
    """The frame that called torch, from that of a mode's outwards: past those of the reader's modes, which pass the call on."""
    while frame is not None and frame.f_code.co_name in ("__torch_function__", "__torch_dispatch__"):
        frame = frame.f_back
    return frame


def transforms() -> int:
    """How many transforms of torch.func are at work around here."""
    stack = torch._C._functorch.get_interpreter_stack()
    return len(stack) if stack else 0
