"""How 64-bit ids get through a first linear layer: all bits times a weight, (A,) ids and (H, 64) weights -> (A, H)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from rlbench.actions import BITS

# (ids (A,) int64, weight (H, 64)) -> (A, H) float: the bits of each id times the weight
Encode = Callable[[Tensor, Tensor], Tensor]


def bits_of(ids: Tensor) -> Tensor:
    """The 64 bits of ids (A,) int64 as (A, 64) float32; column b is the bit of value 2^b."""
    return ((ids[:, None] >> torch.arange(BITS, device=ids.device)) & 1).to(torch.float32)


def encode_shift(ids: Tensor, weight: Tensor) -> Tensor:
    """All bits by one shift with broadcasting, then the first linear layer."""
    return F.linear(bits_of(ids), weight)
