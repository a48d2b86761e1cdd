"""What arithmetic an update's forward passes are done in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Precision:
    """One way to compute products of float32 networks. Parameters, gradients and Adam stay in float32 in all of them.

    Attributes:
        name: the variant's.
        device_type: "cpu" or "cuda".
        autocast: the type in which `torch.autocast` computes products, or None.
        scaled: whether losses are scaled so that small gradients do not vanish in `autocast`'s type.
        matmul: what `torch.set_float32_matmul_precision` is set to while training, or None for leaving it.
    """

    name: str = "float32"
    device_type: str = "cpu"
    autocast: torch.dtype | None = None
    scaled: bool = False
    matmul: str | None = None

    def forward(self) -> AbstractContextManager:
        """Around forward passes. Casts of parameters are not kept: each is used once, and they change."""
        if self.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device_type, dtype=self.autocast, cache_enabled=False)

    @contextlib.contextmanager
    def setting(self) -> Iterator[None]:
        """Around a training: the process-wide setting of float32 products, put back afterwards."""
        if self.matmul is None:
            yield
            return
        older, newer = _matmul_precision()
        _set(self.matmul if older else None, NEWER_NAMES[self.matmul])
        try:
            yield
        finally:
            _set(older, newer)


NEWER_NAMES = {"high": "tf32", "highest": "ieee"}


def _matmul_precision() -> tuple[str | None, str]:
    """(by PyTorch's older interface, by its newer one). The older refuses to be read once the newer was used."""
    newer = torch.backends.cuda.matmul.fp32_precision
    try:
        return torch.get_float32_matmul_precision(), newer
    except RuntimeError:
        return None, newer


def _set(older: str | None, newer: str) -> None:
    if older is not None:
        torch.set_float32_matmul_precision(older)
    torch.backends.cuda.matmul.fp32_precision = newer


FLOAT32 = Precision()
