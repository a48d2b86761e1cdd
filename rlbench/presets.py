"""Several settings at once, by name."""

from __future__ import annotations

from typing import Any

DQN_PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # Fewer, larger and rarer updates on a smaller network: faster a step, not always to a return.
    "fast": {"num_envs": 8, "batch_size": 256, "train_frequency": 16, "hidden": (64, 64)},
    # Reaches 475 on CartPole-v1 within 100,000 steps. With a larger step size values run away above what the discount
    # allows; three steps of reward and a step size that falls to nothing make the end of the run a good policy.
    "cartpole": {
        "learning_rate": 2.5e-4,
        "anneal_lr": True,
        "buffer_size": 100_000,
        "train_frequency": 2,
        "n_step": 3,
        "exploration_fraction": 0.2,
        "end_e": 0.04,
        "huber": True,
    },
    # Rewards are nearly all noise, so batches are large and the step size falls; a position's merit shows within a few
    # bars, so the discount is short. Many starts at once decorrelate replay.
    "trading": {
        "total_timesteps": 60_000,
        "num_envs": 8,
        "gamma": 0.7,
        "batch_size": 512,
        "train_frequency": 8,
        "hidden": (64, 64),
        "learning_rate": 1e-3,
        "anneal_lr": True,
        "buffer_size": 50_000,
        "exploration_fraction": 0.6,
    },
}

PPO_PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # Small minibatches of a few episodes' worth, updated often: fast to a first result, not always to the best one.
    "fast": {"num_envs": 8, "num_steps": 40, "batch_size": 128, "update_epochs": 4},
    # Reaches 475 on CartPole-v1 within its 100,000 steps: short rounds, gone over often.
    "cartpole": {
        "total_timesteps": 100_000,
        "num_envs": 8,
        "num_steps": 32,
        "batch_size": 256,
        "update_epochs": 10,
        "learning_rate": 1e-3,
        "gamma": 0.98,
        "gae_lambda": 0.98,
        "ent_coef": 0.0,
    },
    # Self-play: many games for few steps each, so that a round holds all phases of the game; nothing is discounted, since a
    # win late is as good as one early. Not longer: a policy that went on to meet itself alone lost less often to random
    # moves, and more often to greedy ones.
    "othello": {
        "total_timesteps": 6_000_000,
        "ent_coef": 0.02,
        "num_envs": 1024,
        "num_steps": 16,
        "batch_size": 2048,
        "learning_rate": 1e-3,
        "hidden": (128, 128),
        "gamma": 1.0,
        "log_frequency": 200_000,
    },
    # A game that a small network sees through.
    "othello4": {
        "total_timesteps": 1_000_000,
        "num_envs": 64,
        "num_steps": 32,
        "batch_size": 512,
        "learning_rate": 1e-3,
        "gamma": 1.0,
    },
    # An episode is one step: many at once, and a large step size.
    "bandit": {
        "total_timesteps": 400_000,
        "num_envs": 256,
        "num_steps": 8,
        "batch_size": 512,
        "learning_rate": 3e-3,
        "ent_coef": 0.0,
    },
}
