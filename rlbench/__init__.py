"""rlbench: why is my RL training slow, what makes it faster on this machine, and does it still learn the same?"""

from __future__ import annotations

from typing import Any

from rlbench import envs
from rlbench.config import ConfigError, DQNConfig, PPOConfig
from rlbench.presets import DQN_PRESETS, PPO_PRESETS

__version__ = "0.1.0"

# Loaded on first use, so that `import rlbench` and `rlbench --help` stay light and work on a bare machine.
_LAZY = {
    "ActionSets": "rlbench.actions",
    "DQN": "rlbench.trainers.dqn",
    "History": "rlbench.trainers.history",
    "SPEEDUPS": "rlbench.speedups",
    "ChoiceError": "rlbench.speedups",
    "Choices": "rlbench.speedups",
    "Episodes": "rlbench.episodes",
    "PPO": "rlbench.trainers.ppo",
    "load_prices": "rlbench.prices",
    "pack": "rlbench.actions",
    "phase": "rlbench.phases",
    "profile": "rlbench.profiling",
    "train_on_episodes": "rlbench.trainers.recorded",
}

__all__ = [
    "DQN",
    "DQN_PRESETS",
    "PPO",
    "PPO_PRESETS",
    "SPEEDUPS",
    "ActionSets",
    "ChoiceError",
    "Choices",
    "ConfigError",
    "DQNConfig",
    "Episodes",
    "History",
    "PPOConfig",
    "envs",
    "load_prices",
    "pack",
    "phase",
    "profile",
    "train_on_episodes",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'rlbench' has no attribute {name!r}")
