"""The trainer that goes with settings."""

from __future__ import annotations

from typing import Any

from rlbench.config import Config, ConfigError, DQNConfig, PPOConfig
from rlbench.speedups import Choices
from rlbench.trainers.dqn import DQN
from rlbench.trainers.ppo import PPO
from rlbench.trainers.trainer import Trainer

TRAINERS: dict[type, type[Trainer]] = {DQNConfig: DQN, PPOConfig: PPO}


def make_trainer(
    config: Config, choices: Choices | None, env: Any, device: str = "cpu", eval_env: Any = None
) -> Trainer:
    """A DQN for a `DQNConfig`, a PPO for a `PPOConfig`; arguments as theirs."""
    if type(config) not in TRAINERS:
        raise ConfigError(f"config must be a DQNConfig or a PPOConfig, not {config!r}.")
    return TRAINERS[type(config)](config, choices, env, device, eval_env)
