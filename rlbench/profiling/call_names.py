"""Which calls make the host wait for the device, and how a reader would write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import optimizer as optimizers

IF = re.compile(r"^(if|elif|while|assert)\b|\b(if|and|or|not)\b|\b(any|all)\(")
PRINTED, ARRAY, FLOAT, COPIED = "print(t)", ".numpy()", "float(t)", ".cpu()"
NOTHING = ""  # the name of a call that reads on the host, never on a device
# By what a torch-function mode is called with.
NAMES: dict[Any, str] = {
    Tensor.item: ".item()",
    Tensor.__float__: FLOAT,
    Tensor.__int__: "int(t)",
    Tensor.__index__: "int(t)",
    Tensor.__complex__: "complex(t)",
    Tensor.__bool__: "bool(t)",
    Tensor.is_nonzero: "bool(t)",
    torch.is_nonzero: "bool(t)",
    Tensor.__contains__: "x in t",
    Tensor.tolist: ".tolist()",
    Tensor.numpy: ARRAY,
    Tensor.__array__: ARRAY,
    Tensor.cpu: COPIED,
    Tensor.__repr__: PRINTED,
    Tensor.__format__: PRINTED,
    Tensor.nonzero: "nonzero",
    torch.nonzero: "nonzero",
    torch.argwhere: "nonzero",
    Tensor.argwhere: "nonzero",
    Tensor.masked_select: "masked_select",
    torch.masked_select: "masked_select",
    Tensor.unique: "unique",
    torch.unique: "unique",
    Tensor.equal: "torch.equal",
    torch.equal: "torch.equal",
    Tensor.allclose: "torch.allclose",
    torch.allclose: "torch.allclose",
}
INDEXING = {Tensor.__getitem__: ("t[mask]", "t[i]"), Tensor.__setitem__: ("t[mask] = x", "t[i] = x")}
WHERE = (torch.where, Tensor.where)
FROM_DATA = (torch.tensor, torch.as_tensor, torch.asarray)
COPIES = ("to", "cuda", "_to_copy", "copy_")
HOST_CHECKS = (
    torch.quantile,
    torch.nanquantile,
    Tensor.quantile,
    Tensor.nanquantile,
)  # of where they look, in torch 2.11
TRUTH = (torch.bool, torch.uint8)
# An optimizer's reads of its own step counters, which lie on the host on every device: on one it does not read them.
STEP_COUNTER = getattr(getattr(optimizers, "_get_value", None), "__code__", None)


def sync_name(function: Any, args: tuple, kwargs: dict) -> str | None:
    """The name of a call that waits, None for one that does not, NOTHING for one that reads in its checks on the host alone."""
    name = NAMES.get(function)
    if name is not None:
        return name
    if function in INDEXING:
        return _indexing(INDEXING[function], *args[1:]) if len(args) > 1 else None
    if function in WHERE and len(args) + len(kwargs) == 1:
        return "nonzero"
    if function in FROM_DATA:
        return "torch.tensor(x)" if args and tensors_in(args[0]) else None
    if function in HOST_CHECKS:
        return NOTHING
    if function is functional.one_hot:
        classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
        return "one_hot" if classes == -1 else NOTHING
    return None


def _indexing(names: tuple[str, str], index: Any, value: Any = None) -> str | None:
    """Of `t[index]` and `t[index] = value`: a mask's true places must be counted, and a lone number is read. A number that is
    set where one mask is true fills it in, without a wait."""
    parts = index if isinstance(index, tuple) else (index,)
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if any(_is_mask(part) for part in parts if not isinstance(part, Tensor)):
        return names[0]
    if any(tensor.dtype in TRUTH for tensor in tensors):
        return None if isinstance(value, Number) and len(tensors) == 1 else names[0]
    return names[1] if any(tensor.dim() == 0 for tensor in tensors) else None


def _is_mask(part: Any) -> bool:
    """Of a list or an array in an index."""
    while isinstance(part, list) and part:
        part = part[0]
    return isinstance(part, bool) or (isinstance(part, np.ndarray) and part.dtype == bool)


def what_is_read(function: Any, args: tuple, kwargs: dict) -> list[Tensor]:
    """The tensors whose values a call waits for; of an index all of them have to be on the device."""
    if function in INDEXING:
        return [args[0], *tensors_in(args[1] if isinstance(args[1], tuple) else (args[1],))]
    first = args[0] if args else next(iter(kwargs.values()), None)
    return [first] if isinstance(first, Tensor) else tensors_in(first)


def tensors_in(data: Any) -> list[Tensor]:
    """Tensors among the items of a list, which are read one by one to make a new one; in lists of lists too."""
    found: list[Tensor] = []
    for item in data if isinstance(data, list | tuple) else ():
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, list | tuple):
            found += tensors_in(item)
    return found


def goes_to(function: Any, args: tuple, kwargs: dict) -> torch.device | None:
    """Where `.to` puts a tensor and waits for it; None where it goes nowhere, or without a wait."""
    if function is not Tensor.to or kwargs.get("non_blocking"):
        return None
    for wanted in (*args[1:2], kwargs.get("device")):
        if isinstance(wanted, torch.device | str):
            return torch.device(wanted)
    return None


# By what the dispatcher runs, for calls that torch's own code makes below any function: a name, or what gives it.
OPERATORS: dict[str, str | Callable[[Any, tuple, dict], str | None]] = {
    "aten::_local_scalar_dense": ".item()",
    "aten::nonzero": "nonzero",
    "aten::masked_select": "masked_select",
    "aten::_unique2": "unique",
    "aten::unique_dim": "unique",
    "aten::unique_consecutive": "unique",
    "aten::unique_dim_consecutive": "unique",
    "aten::equal": "torch.equal",
    "aten::bincount": "bincount",
    "aten::_linalg_check_errors": "torch.linalg",
    # the bounds, where none are given
    "aten::histc": lambda op, args, kwargs: "histc" if len(args) < 4 or args[2] == args[3] else None,
    # the sum of the repeats, where nobody gives it
    "aten::repeat_interleave": lambda op, args, kwargs: (
        "repeat_interleave" if op._overloadname == "Tensor" and kwargs.get("output_size") is None else None
    ),
    # standard deviations must not be negative
    "aten::normal": lambda op, args, kwargs: (
        "torch.normal" if op._overloadname in ("float_Tensor", "Tensor_Tensor") else None
    ),
}


def operator_name(operator: Any, args: tuple, kwargs: dict) -> str | None:
    """The name of an operator that waits, None for one that does not."""
    name = OPERATORS.get(operator._schema.name)
    return name(operator, args, kwargs) if callable(name) else name


def unnamed(call: str) -> str:
    """The name of a call or operator that torch says waits, and that nobody expected to: of most a copy."""
    call = call.removeprefix("aten::")
    return ".to(device)" if call in COPIES else {"tensor": "torch.tensor(x)"}.get(call, call)


def in_its_line(name: str, source: str) -> str:
    """A truth value asked for by an `if` or its kind is named so."""
    code = source.split("#")[0]
    return "if t" if name == "bool(t)" and "bool(" not in code and IF.search(code) else name
