"""A DQN on poles in a batch: the training that all sections look at, which needs torch alone."""

from __future__ import annotations

import torch

from rlbench.config import DQNConfig
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.source import env_source
from rlbench.speedups import Choices
from rlbench.trainers.dqn import DQN


def cart_pole_trainer(config: DQNConfig, choices: Choices, device: str | torch.device) -> DQN:
    """The trainer. Its Python loop, also where it stands in for another one, steps the environments as a batch.

    Raises:
        ChoiceError: where an explicit choice cannot be used here.
    """
    env = BatchCartPole(config.num_envs, device, seed=config.seed)
    usable = choices.usable(config, device, env_source(env))
    if usable.loop == "python":
        choices = usable.replace(environments="batched")
    return DQN(config, choices, env=env, device=str(device))
