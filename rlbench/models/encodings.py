"""How 64-bit ids get through a first linear layer: the bits of each times a weight, (A,) ids and (H, 64) weights -> (A, H).

Bit b of an id is column b of the weight. Every way gives the same numbers but for rounding, and the same gradient.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from rlbench.actions import BITS

# (ids (A,) int64, weight (H, 64)) -> (A, H) float: the bits of each id times the weight
Encode = Callable[[Tensor, Tensor], Tensor]

BYTES, VALUES = BITS // 8, 256
MIN_IDS = 768  # from here on sums of table rows are cheaper than bits and a product, tables and all (`measure action_encoding`)
MIN_SORTED = 1280  # the same of the gradient, where bytes are sorted


def encode_loop(ids: Tensor, weight: Tensor) -> Tensor:
    """One shift and one mask a bit, 64 times, and a stack of what comes of it."""
    bits = torch.stack([(ids >> bit) & 1 for bit in range(BITS)], 1)
    return F.linear(bits.to(weight.dtype), weight)


def bits_of(ids: Tensor) -> Tensor:
    """The 64 bits of ids (A,) int64 as (A, 64) float32; column b is the bit of value 2^b."""
    return ((ids[:, None] >> torch.arange(BITS, device=ids.device)) & 1).to(torch.float32)


def encode_shift(ids: Tensor, weight: Tensor) -> Tensor:
    """All bits by one shift with broadcasting, then the first linear layer."""
    return F.linear(bits_of(ids), weight)


@cache
def byte_table(device: torch.device) -> Tensor:
    """The bits of every byte, (256, 8) float32."""
    with torch.inference_mode(False):  # it is kept, and may be needed for a gradient later
        return ((torch.arange(VALUES)[:, None] >> torch.arange(8)) & 1).to(device, torch.float32)


def table_bits(ids: Tensor) -> Tensor:
    """`bits_of` with eight bits found at a time. The first byte of an int64 in memory is that of its lowest bits."""
    return byte_table(ids.device).index_select(0, ids.view(torch.uint8).to(torch.int32)).view(-1, BITS)


def encode_byte_table(ids: Tensor, weight: Tensor) -> Tensor:
    """Bits looked up a byte at a time, then the first linear layer."""
    return F.linear(table_bits(ids), weight)


def encode_fused(ids: Tensor, weight: Tensor) -> Tensor:
    """Bits and linear layer in one: what each byte adds to the outcome is looked up, and eight rows are added.

    Few ids do not repay the tables, 8 times 256 rows: those go the way of `encode_byte_table`.
    """
    if len(ids) < MIN_IDS:
        return encode_byte_table(ids, weight)
    if not torch.is_grad_enabled():
        return add_table_rows(ids, weight)
    return _Fused.apply(ids, weight)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.dtype = weight.dtype
        return add_table_rows(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (ids,) = ctx.saved_tensors
        return None, sums_by_bit(ids, grad).t().to(ctx.dtype)


def encode_onto(encode: Encode, ids: Tensor, weight: Tensor, joint: Tensor) -> Tensor:
    """`encode(ids, weight) + joint`, with joint (A, H) or (1, H): one product where there is a product."""
    bits = table_bits if encode is encode_fused and len(ids) < MIN_IDS else BITS_OF.get(encode)
    return encode(ids, weight) + joint if bits is None else torch.addmm(joint, bits(ids), weight.t())


BITS_OF = {encode_shift: bits_of, encode_byte_table: table_bits}


def add_table_rows(ids: Tensor, weight: Tensor, joint: Tensor | None = None, states: Tensor | None = None) -> Tensor:
    """(A, H): eight table rows an id, and its row of `joint` where that is given, as a ninth."""
    parts = BYTES + (joint is not None)
    tables = tables_of(weight, joint)
    rows = torch.empty((len(ids), parts), dtype=torch.int32, device=ids.device)
    first = torch.arange(0, BYTES * VALUES, VALUES, device=ids.device, dtype=torch.int32)
    torch.add(ids.view(torch.uint8).view(-1, BYTES), first, out=rows[:, :BYTES])
    if states is not None:
        torch.add(states, BYTES * VALUES, out=rows[:, BYTES])
    ends = torch.arange(0, rows.numel() + 1, parts, device=ids.device, dtype=torch.int32)
    return torch.embedding_bag(tables, rows.view(-1), ends, False, 0, False, None, True)[0]


def tables_of(weight: Tensor, more: Tensor | None = None) -> Tensor:
    """What each value of each byte adds, (8 * 256, H) of weight (H, 64), and below it the rows of `more`.

    Made of what each half byte adds. In the type of autocast where that is on; sums are made in the wider one.
    """
    kind, width = weight.device.type, len(weight)
    with torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else contextlib.nullcontext():
        half_bits = byte_table(weight.device)[:16, :4].to(weight.dtype)
        halves = torch.matmul(half_bits, weight.t().reshape(2 * BYTES, 4, width)).view(BYTES, 2, 16, width)
        tables = weight.new_empty((BYTES * VALUES + (0 if more is None else len(more)), width))
        whole = tables[: BYTES * VALUES].view(BYTES, 16, 16, width)
        torch.add(halves[:, 1].unsqueeze(2), halves[:, 0].unsqueeze(1), out=whole)
        if more is not None:
            tables[BYTES * VALUES :] = more
    return tables.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else tables


def sums_by_bit(ids: Tensor, rows: Tensor, weights: Tensor | None = None) -> Tensor:
    """For each bit the sum of rows (A, H), times weights (A,), of the ids that have it: (64, H).

    As a product with the bits, made again from the ids. On the CPU, for many ids, an id's row is added to eight sums, one a byte,
    instead of to as many as it has bits; those of a value of a byte are brought together first, so that they are added in one go.
    """
    if ids.device.type != "cpu" or len(ids) < MIN_SORTED or rows.dtype != torch.float32:
        bits = table_bits(ids).to(rows.dtype)
        return (bits if weights is None else bits.mul_(weights.unsqueeze(1))).t() @ rows
    # NumPy turns bytes several times as fast, and sorts them by counting.
    by_id = ids.numpy().view(np.uint8).reshape(-1, BYTES)  # sync: on the host already
    values = np.ascontiguousarray(by_id.T)  # (8, A)
    order = torch.from_numpy(values.argsort(axis=1, kind="stable")).view(-1)
    first = torch.arange(0, BYTES * VALUES, VALUES, dtype=torch.int32)
    counts = torch.bincount((torch.from_numpy(values) + first.unsqueeze(1)).view(-1), minlength=BYTES * VALUES)
    ends = torch.zeros(BYTES * VALUES + 1, dtype=torch.int64)
    torch.cumsum(counts, 0, out=ends[1:])
    each = None if weights is None else weights.index_select(0, order)
    sums = torch.embedding_bag(rows, order, ends, False, 0, False, each, True)[0]  # (8 * 256, H)
    return torch.matmul(byte_table(ids.device).t(), sums.view(BYTES, VALUES, -1)).flatten(0, 1)
