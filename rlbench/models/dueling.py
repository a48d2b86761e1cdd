"""The dueling network (Wang et al., 2016): the value of a state and the advantages of its actions, learnt apart."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rlbench.models.mlp import mlp


class Dueling(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean of A(s, ·) over all actions, legal or not (the paper's equation 9).

    The hidden layers are shared; each stream is one dense layer behind them. Both streams are one matrix product, whose first
    column is the value. Every update moves V, which all actions share; without the mean, V and A could drift apart.
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], outputs: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.layers = mlp(inputs, hidden, 1 + outputs, generator)

    def forward(self, obs: Tensor) -> Tensor:
        """(B, inputs) -> (B, outputs)."""
        streams = self.layers(obs)  # (B, 1 + A)
        value, advantage = streams[:, :1], streams[:, 1:]
        return value + advantage - advantage.mean(dim=1, keepdim=True)
