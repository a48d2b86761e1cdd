"""rlbench: why is my RL training slow, what makes it faster on this machine, and does it still learn the same?"""

from __future__ import annotations

from typing import Any

from rlbench import envs
from rlbench.config import DQN_PRESETS, ConfigError, DQNConfig

__version__ = "0.1.0"

# Loaded on first use, so that `import rlbench` and `rlbench --help` stay light and work on a bare machine.
_LAZY = {
    "DQN": "rlbench.trainers.dqn",
    "History": "rlbench.trainers.history",
    "SPEEDUPS": "rlbench.speedups",
    "ChoiceError": "rlbench.speedups",
    "Choices": "rlbench.speedups",
    "load_prices": "rlbench.prices",
}

__all__ = [
    "DQN",
    "DQN_PRESETS",
    "SPEEDUPS",
    "ChoiceError",
    "Choices",
    "ConfigError",
    "DQNConfig",
    "History",
    "envs",
    "load_prices",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'rlbench' has no attribute {name!r}")
