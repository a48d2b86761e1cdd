"""A light network for a window of bars: 1x1 convolutions over the features, then dense layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rlbench.batch import Layout
from rlbench.models.layers import pointwise
from rlbench.models.mlp import mlp

FILTERS = 4


class BarConv(nn.Module):
    """The same small layer of `filters` outputs at every bar, then what it found at all bars and the own numbers, dense.

    A window of W bars with F features costs the first dense layer W · F inputs in a plain network, W · filters here, and bars
    share what is learnt about one of them. With few features there is nothing to save.
    """

    def __init__(
        self,
        layout: Layout,
        hidden: Sequence[int],
        outputs: int,
        generator: torch.Generator | None = None,
        filters: int = FILTERS,
    ) -> None:
        super().__init__()
        window, features, own = layout
        self.window, self.features = window, features
        self.filters = pointwise(window, features, filters, generator)
        self.layers = mlp(window * filters + own, hidden, outputs, generator)

    def forward(self, obs: Tensor) -> Tensor:
        """(B, window * features + own), oldest bar first, -> (B, outputs)."""
        split = self.window * self.features
        bars = obs[:, :split].unflatten(1, (self.window, self.features))  # (B, W, F)
        seen = F.relu(self.filters(bars)).flatten(1)  # (B, W * filters)
        return self.layers(torch.cat([seen, obs[:, split:]], dim=1))
