"""An actor and a critic for a fixed number of actions: two networks with tanh, as in CleanRL's PPO."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN = 2**0.5, 0.01, 1.0  # the first policy is nearly uniform


class ActorCritic(nn.Module):
    """Scores (B, A) of actions and values (B,) at observations (B, D), from two networks that share nothing.

    Weights are orthogonal (Saxe et al., 2014), biases zero.
    """

    def __init__(
        self, obs_size: int, hidden: Sequence[int], num_actions: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.actor = _network([obs_size, *hidden, num_actions], POLICY_GAIN, generator)
        self.critic = _network([obs_size, *hidden, 1], VALUE_GAIN, generator)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(obs), self.values(obs)

    def values(self, obs: Tensor) -> Tensor:
        """Values (B,) in float32."""
        return self.critic(obs).squeeze(-1).float()


def _network(widths: Sequence[int], last_gain: float, generator: torch.Generator | None) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number, (fan_in, fan_out) in enumerate(pairwise(widths), start=1):
        layer = nn.utils.skip_init(nn.Linear, fan_in, fan_out)
        with torch.no_grad():
            gain = last_gain if number == len(widths) - 1 else HIDDEN_GAIN
            nn.init.orthogonal_(layer.weight, gain, generator=generator)
            layer.bias.zero_()
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])
