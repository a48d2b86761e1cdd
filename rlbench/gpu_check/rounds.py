"""Rounds of PPO, a stretch at a time, for what the GPU does meanwhile."""

from __future__ import annotations

import torch

from rlbench.config import PPOConfig
from rlbench.gpu_check.loop import FOR_EVER, STRETCH_S, Stretches
from rlbench.gpu_check.trainer import othello_trainer
from rlbench.speedups import Choices

STEPS, EPOCHS, HIDDEN = 16, 2, (128, 128)


class Rounds(Stretches):
    """PPO in self-play on 8x8 boards; a log point a round of STEPS steps of all games, gone over EPOCHS times in two parts."""

    def __init__(self, num_envs: int, device: torch.device, quick: bool, seed: int, choices: Choices) -> None:
        config = PPOConfig(
            total_timesteps=FOR_EVER,
            num_envs=num_envs,
            num_steps=STEPS,
            batch_size=max(1, num_envs * STEPS // 2),
            update_epochs=EPOCHS,
            hidden=HIDDEN,
            anneal_lr=False,
            log_frequency=num_envs * STEPS,
            eval_episodes=0,
            seed=seed,
        )
        self.least_s = 0.0 if quick else STRETCH_S
        self.agent = othello_trainer(config, choices, device)
