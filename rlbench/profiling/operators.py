"""What an operator computes and moves: floating-point operations, bytes, and the shapes of matrix products."""

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import flop_registry

from rlbench.profiling.records import Product, Work

DENSE = {
    "aten::mm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::bmm": (0, 1),
    "aten::baddbmm": (1, 2),
}  # places of the two matrices
# Views by another name, memory that nobody fills, and reads, which are synchronisations.
NO_KERNEL = (
    *("aten::detach", "aten::detach_", "aten::alias", "aten::lift", "aten::lift_fresh", "aten::_unsafe_view"),
    *("aten::squeeze_", "aten::unsqueeze_", "aten::transpose_", "aten::t_", "aten::as_strided_", "aten::set_"),
    *("aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided"),
    *("aten::resize_", "aten::_local_scalar_dense", "aten::record_stream", "aten::is_same_size"),
)

# Of the first tensor only as much is read as comes out, or as much is written as goes in; or nothing is read of it.
READS_SOME = (
    "aten::index",
    "aten::index_select",
    "aten::gather",
    "aten::embedding",
    "aten::take",
    "aten::masked_select",
)
WRITES_SOME = (
    *("aten::index_put_", "aten::_index_put_impl_", "aten::index_copy_", "aten::index_add_", "aten::index_fill_"),
    *("aten::scatter_", "aten::scatter_add_", "aten::masked_scatter_"),
)
ONLY_WRITES = (
    *("aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::random_"),
    *("aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::rand_like", "aten::randn_like"),
)


class Arithmetic:
    """Adds up, by phase; and products by phase, shape and whether gradients are recorded."""

    def __init__(self) -> None:
        self._flops: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._ops: Counter[str] = Counter()
        self._types: dict[str, Counter[str]] = {}  # of matrix products, by their operations
        self._products: Counter[tuple[str, int, int, int, bool, bool]] = Counter()

    def book(self, operator: Any, args: tuple, kwargs: dict, result: Any, phase: str) -> bool:
        """Add an operator; False where it computes nothing, such as a view."""
        if is_free(operator):
            return False
        self._ops[phase] += 1
        self._bytes[phase] += bytes_of(operator, args, kwargs, result)
        flops = flops_of(operator, args, kwargs, result)
        if flops:
            self._flops[phase] += flops
            kind = str(_first(args).dtype).removeprefix("torch.")
            self._types.setdefault(phase, Counter())[kind] += flops
            if not in_backward():
                self._product(operator, args, result, phase)
        return True

    def _product(self, operator: Any, args: tuple, result: Tensor, phase: str) -> None:
        name, learning = operator._schema.name, torch.is_grad_enabled()
        if name in DENSE:
            left, right = (args[place] for place in DENSE[name])
            rows = math.prod(left.shape[:-1])
            self._products[phase, rows, left.shape[-1], right.shape[-1], learning, False] += 1
        elif name == "aten::convolution":
            weight = args[1]
            places, patch = result.numel() // weight.shape[0], math.prod(weight.shape[1:])
            self._products[phase, places, patch, weight.shape[0], learning, True] += 1

    def products(self) -> tuple[Product, ...]:
        return tuple(
            Product(phase, batch, inputs, outputs, calls, learning, convolution)
            for (phase, batch, inputs, outputs, learning, convolution), calls in self._products.items()
        )

    def work(self) -> tuple[Work, ...]:
        made = []
        for phase, ops in self._ops.items():
            kinds = self._types.get(phase)
            kind = {"dtype": kinds.most_common(1)[0][0]} if kinds else {}
            made.append(Work(phase, self._flops[phase], self._bytes[phase], ops, **kind))
        return tuple(made)


def flops_of(operator: Any, args: tuple, kwargs: dict, result: Any) -> int:
    """By torch's own formulas; 0 for operators and shapes that it has none for."""
    formula = flop_registry.get(operator._overloadpacket)
    if formula is None:
        return 0
    try:
        return int(formula(*args, **kwargs, out_val=result))
    except (AttributeError, AssertionError, IndexError, RuntimeError, TypeError, ValueError):  # such as sparse, nested
        return 0


def in_backward() -> bool:
    """Whether autograd is at work, under whatever phase."""
    return torch._C._current_graph_task_id() != -1


def bytes_of(operator: Any, args: tuple, kwargs: dict, result: Any) -> int:
    """Bytes that an operator must at least read and write: rows of a large tensor, not all of it."""
    name, rest = operator._schema.name, moved(args[1:]) + moved(kwargs.values())
    if name in READS_SOME:
        return rest + 2 * moved((result,))
    if name in WRITES_SOME:
        return rest
    written = moved((result,)) if operator._schema.returns else moved(_changed(operator, args))
    return rest + written + (0 if name in ONLY_WRITES else moved(args[:1]))


def _changed(operator: Any, args: tuple) -> list[Any]:
    """The arguments that an operator without a result writes to, such as the lists of `_foreach_add_`."""
    values = zip(operator._schema.arguments, args, strict=False)
    return [value for argument, value in values if argument.alias_info is not None and argument.alias_info.is_write]


def moved(values: Any) -> int:
    """Bytes of all tensors in arguments or results, those in lists too; of an expanded one those that are in memory."""
    total = 0
    for value in values:
        if isinstance(value, Tensor):
            size = value.numel() * value.element_size()
            expanded = value.layout == torch.strided and not value.is_nested and 0 in value.stride()
            total += min(size, value.untyped_storage().nbytes()) if expanded else size
        elif isinstance(value, tuple | list):
            total += moved(value)
    return total


@functools.cache
def is_free(operator: Any) -> bool:
    """Whether it starts no computation: a view, memory that is asked for and not filled, a mark of a profiler's."""
    schema = operator._schema
    if schema.name in NO_KERNEL or operator.namespace in ("profiler", "prim"):
        return True
    views = [value.alias_info for value in schema.returns]
    return bool(views) and all(view is not None and not view.is_write for view in views)


def _first(args: tuple) -> Tensor:
    return next(value for value in args if isinstance(value, Tensor))
