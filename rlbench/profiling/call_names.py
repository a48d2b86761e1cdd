"""Which calls make the host wait for the device, and how a reader would write them."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

IF = re.compile(r"^(if|elif|while|assert)\b|\b(if|and|or|not)\b|\b(any|all)\(")
PRINTED = "print(t)"
# By what a torch-function mode is called with.
NAMES: dict[Any, str] = {
    Tensor.item: ".item()",
    Tensor.__float__: "float(t)",
    Tensor.__int__: "int(t)",
    Tensor.__index__: "int(t)",
    Tensor.__complex__: "complex(t)",
    Tensor.__bool__: "bool(t)",
    Tensor.is_nonzero: "bool(t)",
    Tensor.__contains__: "x in t",
    Tensor.tolist: ".tolist()",
    Tensor.numpy: ".numpy()",
    Tensor.__array__: ".numpy()",
    Tensor.cpu: ".cpu()",
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
INDEXING = {Tensor.__getitem__: "t[mask]", Tensor.__setitem__: "t[mask] = x"}
WHERE = (torch.where, Tensor.where)
# By what the dispatcher runs, for calls that torch's own code makes below any function.
OPERATORS = {
    "aten::_local_scalar_dense": ".item()",
    "aten::nonzero": "nonzero",
    "aten::masked_select": "masked_select",
    "aten::_unique2": "unique",
    "aten::unique_dim": "unique",
    "aten::equal": "torch.equal",
}


def sync_name(function: Any, args: tuple, kwargs: dict) -> str | None:
    """The name of a call that waits, None for one that does not."""
    name = NAMES.get(function)
    if name is not None:
        return name
    if function in INDEXING:
        return INDEXING[function] if len(args) > 1 and _has_mask(args[1]) else None
    if function in WHERE and len(args) + len(kwargs) == 1:
        return "nonzero"
    if function is Tensor.to and _goes_to_host(args, kwargs):
        return ".cpu()"
    return None


def _has_mask(index: Any) -> bool:
    parts = index if isinstance(index, tuple | list) else (index,)
    return any(isinstance(part, Tensor) and part.dtype in (torch.bool, torch.uint8) for part in parts)


def _goes_to_host(args: tuple, kwargs: dict) -> bool:
    """`.to("cpu")` of a tensor that lies on a device."""
    if not (isinstance(args[0], Tensor) and args[0].device.type != "cpu"):
        return False
    wanted = [*args[1:], *kwargs.values()]
    devices = [torch.device(w) for w in wanted if isinstance(w, torch.device) or w == "cpu"]
    return any(device.type == "cpu" for device in devices)


def in_its_line(name: str, source: str) -> str:
    """A truth value asked for by an `if` or its kind is named so."""
    return "if t" if name == "bool(t)" and "bool(" not in source and IF.search(source) else name
