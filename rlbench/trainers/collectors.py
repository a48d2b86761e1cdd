"""The collector that goes with a trainer's loop."""

from __future__ import annotations

from typing import Any

import torch

from rlbench.config import DQNConfig
from rlbench.envs.make import make_collector
from rlbench.envs.source import EnvSource
from rlbench.speedups import Choices


def collector_of(source: EnvSource, config: DQNConfig, choices: Choices, device: torch.device) -> Any:
    """A collector of NumPy arrays for the Python loop; the batched env itself for a loop that steps it on its own."""
    if choices.loop == "native":
        from rlbench.envs.native_env import NativeCollector

        return NativeCollector(source.batch(config.num_envs, config.seed, device))
    return make_collector(source.given, config.num_envs, config.seed)
