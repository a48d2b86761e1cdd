"""A plain multi-layer perceptron: Linear and ReLU, as in CleanRL's and Stable-Baselines3's DQN."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn


def mlp(inputs: int, hidden: Sequence[int], outputs: int, generator: torch.Generator | None = None) -> nn.Sequential:
    """A network (B, inputs) -> (B, outputs) with a ReLU behind every hidden layer.

    Weights and biases are uniform in ±1/sqrt(fan in), PyTorch's own default for `nn.Linear`, but drawn from `generator`, so
    that no global random state is read or moved.
    """
    widths = [inputs, *hidden, outputs]
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        linear = nn.utils.skip_init(nn.Linear, fan_in, fan_out)
        bound = fan_in**-0.5
        with torch.no_grad():
            linear.weight.uniform_(-bound, bound, generator=generator)
            linear.bias.uniform_(-bound, bound, generator=generator)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def parameter_count(network: nn.Module) -> int:
    """Number of trained scalars."""
    return sum(p.numel() for p in network.parameters())


def forward_flops(widths: Sequence[int]) -> int:
    """Floating-point operations of one row's forward pass: a multiply and an add for each weight (biases, ReLU left out)."""
    return sum(2 * a * b for a, b in pairwise(widths))
