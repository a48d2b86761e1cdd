"""Puts modes below all others on torch's stacks, and takes them away from there.

Torch ends a context of the reader's, such as `with torch.device("cuda"):`, by taking away what lies on top. A mode that was put
on top in the midst of such a context would be taken in its place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import overrides
from torch.overrides import TorchFunctionMode
from torch.utils import _python_dispatch as dispatch
from torch.utils._python_dispatch import TorchDispatchMode


def put_functions(mode: TorchFunctionMode) -> None:
    lifted = _lift_functions()
    if lifted and lifted[-1] is getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None):
        overrides._push_mode(lifted.pop())  # of `torch.set_default_device`, which must stay lowest
    _put(overrides._push_mode, [*lifted, mode])


def take_functions(mode: TorchFunctionMode) -> bool:
    """False where it is not there, such as in the midst of its own work."""
    lifted = _lift_functions()
    _put(overrides._push_mode, [other for other in lifted if other is not mode])
    return mode in lifted


def has_functions(mode: TorchFunctionMode) -> bool:
    return any(torch._C._get_function_stack_at(i) is mode for i in range(torch._C._len_torch_function_stack()))


def put_operators(mode: TorchDispatchMode) -> None:
    """Without what `with mode:` tells the compiler, which would be taken back in the wrong order."""
    _put(dispatch._push_mode, [*_lift_operators(), mode])


def take_operators(mode: TorchDispatchMode) -> bool:
    """False where it is not there, such as in the midst of its own work."""
    lifted = _lift_operators()
    _put(dispatch._push_mode, [other for other in lifted if other is not mode])
    return mode in lifted


def has_operators(mode: TorchDispatchMode) -> bool:
    return any(torch._C._get_dispatch_stack_at(i) is mode for i in range(torch._C._len_torch_dispatch_stack()))


def _lift_functions() -> list[Any]:
    """All of the stack, the highest first."""
    return [overrides._pop_mode() for _ in range(torch._C._len_torch_function_stack())]


def _lift_operators() -> list[Any]:
    """All but torch's own, such as that of fake tensors, which have places of their own."""
    stack = [torch._C._get_dispatch_stack_at(i) for i in range(torch._C._len_torch_dispatch_stack())]
    return [dispatch._pop_mode() for mode in stack if getattr(mode, "_mode_key", None) is None]


def _put(push: Any, modes: list[Any]) -> None:
    """The last one lowest."""
    for mode in reversed(modes):
        push(mode)
