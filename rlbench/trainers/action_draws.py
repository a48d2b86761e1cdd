"""The random numbers by which a policy acts: a function of seed, step and environment alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rlbench.config import PPOConfig
from rlbench.random import Purpose, random_bits, to_uniform

# Takes (real transitions of the rollout so far, return, length) of episodes that ended.
NoteEpisodes = Callable[[list[tuple[int, float, int]]], None]


def uniforms(config: PPOConfig, first: int, num_envs: int, device: torch.device) -> Tensor:
    """The draws (T, N) float32 by which the policy acts in a rollout whose first step is number `first`."""
    steps = torch.arange(first, first + config.num_steps, device=device)[:, None]
    return to_uniform(random_bits(config.seed, Purpose.ACTION, steps, torch.arange(num_envs, device=device)))
