"""The trainings that sections look at, which need torch alone: a DQN on poles in a batch, and PPO on games of Othello."""

from __future__ import annotations

import torch

from rlbench.config import DQNConfig, PPOConfig
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.othello import Othello
from rlbench.envs.source import env_source
from rlbench.speedups import Choices
from rlbench.trainers.dqn import DQN
from rlbench.trainers.ppo import PPO


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


def othello_trainer(config: PPOConfig, choices: Choices, device: str | torch.device, size: int = 8) -> PPO:
    """Self-play on boards of that size.

    Raises:
        ChoiceError: where an explicit choice cannot be used here.
    """
    return PPO(config, choices, env=Othello(size), device=str(device))
