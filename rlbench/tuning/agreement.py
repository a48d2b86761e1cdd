"""Whether choices learn what plain() learns: the same training by both, from the same seed, for a few updates."""

from __future__ import annotations

from typing import Any

import torch

from rlbench.speedups import Choices
from rlbench.trainers.make import make_trainer

UPDATES = 12  # few, so that rounding has not yet changed an action
MOST = 0.05  # distance of the weights, as a share of how far plain() moved them


def distance(config: Any, choices: Choices, plain: Choices, env: Any, device: str) -> float:
    """How far apart the networks are after a few updates, over how far plain() moved its own. 0 for the same to the last bit."""
    config = short(config)
    start, ours = weights_after(config, choices, env, device)
    _, expected = weights_after(config, plain, env, device)
    moved = (expected - start).norm().item()
    return ((ours - expected).norm() / moved).item() if moved else float((ours - expected).norm().item() > 0)


def short(config: Any) -> Any:
    """A training of a few updates, all else alike."""
    none = {"eval_episodes": 0, "eval_frequency": 0}
    if config.trainer == "ppo":
        steps = min(config.num_steps, 16)
        return config.replace(num_steps=steps, total_timesteps=steps * config.num_envs, **none)
    starts = min(config.learning_starts, 4 * config.batch_size)
    steps = starts + UPDATES * max(config.train_frequency, config.num_envs) // config.gradient_steps + config.num_envs
    return config.replace(learning_starts=starts, total_timesteps=steps, **none)


def weights_after(config: Any, choices: Choices, env: Any, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The network's weights before and after, as vectors on the host."""
    trainer = make_trainer(config, choices, env, device)
    before = _vector(trainer)
    trainer.train(progress=False)
    after = _vector(trainer)
    trainer.close()
    return before, after


def _vector(trainer: Any) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1).double().cpu().clone() for p in trainer.network.parameters()])
