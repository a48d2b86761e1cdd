"""Which tensors a reader brought to the host with `.cpu()`: reading those waits for nothing any more.

On the CPU `.cpu()` gives back the tensor that it was given. So that `.cpu().numpy()` is one wait and not two, that tensor, its
views and what is computed from such tensors alone count as being on the host, for as long as they live and nothing is written to
them.
"""

from __future__ import annotations

import itertools
import linecache
import re
import weakref
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from rlbench.profiling.call_names import tensors_in

TO_HOST = re.compile(r"""\.to\(\s*(device\s*=\s*)?(torch\.device\(\s*)?["']cpu["']""")


class HostCopies:
    """Tensors by the memory that they lie in."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[weakref.ref, int]] = {}

    def add(self, tensor: Tensor) -> None:
        key = _memory(tensor)
        if key is not None:
            self._copies = {at: copy for at, copy in self._copies.items() if copy[0]() is not None}
            self._copies[key] = weakref.ref(tensor), _version(tensor)

    def forget(self, tensor: Tensor) -> None:
        """It is put on a device again."""
        key = _memory(tensor) if self._copies else None
        if key is not None:
            self._copies.pop(key, None)

    def all_here(self, values: Any) -> bool:
        """Whether there are tensors among an operator's arguments, and all of them are on the host."""
        if not self._copies:
            return False
        tensors = tensors_in(list(values))
        return bool(tensors) and all(tensor in self for tensor in tensors)

    def __contains__(self, tensor: Tensor) -> bool:
        key = _memory(tensor) if self._copies else None
        copy = self._copies.get(key) if key is not None else None
        return copy is not None and copy[0]() is not None and copy[1] == _version(tensor)


def _memory(tensor: Tensor) -> int | None:
    """Where its storage begins; None for tensors without one, or without elements."""
    with torch._C.DisableTorchFunction():
        if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.layout != torch.strided or tensor.is_nested:
            return None
        return tensor.untyped_storage().data_ptr() or None


def _version(tensor: Tensor) -> int:
    """How often it was written to; inference tensors do not tell."""
    with torch._C.DisableTorchFunction():
        return 0 if tensor.is_inference() else tensor._version


def says_host(frame: FrameType | None) -> bool:
    """Whether the call in which a frame stands is written `.to("cpu")`, rather than with a device in a variable."""
    call = "" if frame is None else call_source(frame)
    return TO_HOST.match(call, max(call.rfind(".to("), 0)) is not None


def call_source(frame: FrameType) -> str:
    """The source of the expression that a frame is at; "" where it cannot be read."""
    at = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    if None in at:
        return ""
    first, last, begin, end = at
    lines = [
        line.encode() for line in linecache.getlines(frame.f_code.co_filename)[first - 1 : last]
    ]  # columns are of bytes
    if len(lines) != last - first + 1:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    return b"".join(lines).decode(errors="replace")
