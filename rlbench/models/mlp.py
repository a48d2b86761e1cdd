"""A plain multi-layer perceptron: Linear and ReLU, as in CleanRL's and Stable-Baselines3's DQN."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from rlbench.models.layers import dense


def mlp(inputs: int, hidden: Sequence[int], outputs: int, generator: torch.Generator | None = None) -> nn.Sequential:
    """A network (B, inputs) -> (B, outputs) with a ReLU behind every hidden layer.

    Weights and biases are uniform in ±1/sqrt(fan in), PyTorch's own default for `nn.Linear`, but drawn from `generator`, so
    that no global random state is read or moved.
    """
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise([inputs, *hidden, outputs]):
        layers += [dense(fan_in, fan_out, generator), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
