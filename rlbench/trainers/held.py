"""Which tensors and arrays an object holds, by the names under which they are reached."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

LONG = 1_000  # items from which on a list is counted by its first one
OPAQUE = (str, bytes, int, float, bool, type, types.ModuleType, torch.Generator, torch.device, np.generic)
CONTAINERS = (list, tuple, set, frozenset, deque)


class Held(NamedTuple):
    """One piece of memory."""

    name: str  # attribute path
    shape: tuple[int, ...]
    device: str
    nbytes: int
    extent: int  # bytes that this view of it spans


def held_tensors(root: Any) -> list[Held]:
    """Every tensor and array reached from `root`'s attributes, the largest first; each piece of memory once.

    Followed are containers, closures, modules, optimizers and objects of this package and of the module of `root`; of several
    views of one piece of memory the widest gives the name. A list of a thousand items or more counts as many times its first.
    """
    ours = {"rlbench", type(root).__module__.split(".")[0]}
    found: dict[tuple[str, int], Held] = {}
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [("", root)]
    while stack:
        name, value = stack.pop()
        if value is None or isinstance(value, OPAQUE) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor | np.ndarray):
            key, piece = _piece(name, value)
            if key not in found or piece.extent > found[key].extent:
                found[key] = piece
            stack.append((f"{name}.grad", value.grad if isinstance(value, Tensor) and value.is_leaf else None))
        elif isinstance(value, CONTAINERS) and len(value) >= LONG:
            first = sum(piece.nbytes for piece in held_tensors(next(iter(value))))
            if first:
                found["list", id(value)] = Held(name, (len(value),), "cpu", first * len(value), first * len(value))
        else:
            stack += reversed([(f"{name}.{part}".lstrip("."), each) for part, each in _parts(value, ours)])
    return sorted(found.values(), key=lambda piece: -piece.nbytes)


def _piece(name: str, value: Tensor | np.ndarray) -> tuple[tuple[str, int], Held]:
    if isinstance(value, Tensor):
        storage, device = value.untyped_storage(), str(value.device)
        piece = Held(name, tuple(value.shape), device, storage.nbytes(), value.numel() * value.element_size())
        return (device, storage.data_ptr() if storage.nbytes() else id(value)), piece
    base = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    return ("cpu", base.__array_interface__["data"][0]), Held(name, value.shape, "cpu", base.nbytes, value.nbytes)


def _parts(value: Any, ours: set[str]) -> Iterator[tuple[str, Any]]:
    """(name, value) of what an object consists of; nothing of what is foreign."""
    if isinstance(value, dict):
        yield from ((str(key) if isinstance(key, str | int) else str(i), v) for i, (key, v) in enumerate(value.items()))
    elif isinstance(value, CONTAINERS):
        names = getattr(value, "_fields", range(len(value)))
        yield from zip(map(str, names), value, strict=True)
    elif isinstance(value, nn.Module):
        yield from value.named_parameters()
        yield from value.named_buffers()
    elif isinstance(value, torch.optim.Optimizer):
        yield "state", dict(enumerate(value.state.values()))
    elif isinstance(value, functools.partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, types.MethodType):
        yield "self", value.__self__
    elif isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in cells if _filled(cell))
    elif type(value).__module__.split(".")[0] in ours:
        slots = [
            name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(value, name)
        ]
        yield from getattr(value, "__dict__", {}).items()
        yield from ((name, getattr(value, name)) for name in slots)


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not bound yet
        return False
