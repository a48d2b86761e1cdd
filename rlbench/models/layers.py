"""The layers that networks are made of, with weights from a generator, so that no global random state is read or moved."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class PointwiseConv(nn.Linear):
    """A 1x1 convolution over a window of bars: one dense layer, the same at every bar, (B, W, F) -> (B, W, C).

    `nn.Conv1d` with a kernel of one does the same to (B, F, W). Here the features of a bar lie side by side in memory, so that
    it is one matrix product and nothing has to be moved.
    """

    def __init__(self, window: int, features: int, filters: int, device: Any = None) -> None:
        super().__init__(features, filters, device=device)
        self.window = window


def dense(inputs: int, outputs: int, generator: torch.Generator | None) -> nn.Linear:
    """A dense layer (B, inputs) -> (B, outputs)."""
    return _drawn(nn.utils.skip_init(nn.Linear, inputs, outputs), generator)


def pointwise(window: int, features: int, filters: int, generator: torch.Generator | None) -> PointwiseConv:
    """A 1x1 convolution (B, window, features) -> (B, window, filters)."""
    return _drawn(nn.utils.skip_init(PointwiseConv, window, features, filters), generator)


def _drawn(layer: Any, generator: torch.Generator | None) -> Any:
    """Weights and biases uniform in ±1/sqrt(fan in): PyTorch's own default, but from `generator`."""
    bound = layer.in_features**-0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer
