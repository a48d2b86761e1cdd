"""The collector that goes with a trainer's choices."""

from __future__ import annotations

from typing import Any

import torch

from rlbench.config import DQNConfig
from rlbench.envs.executors import EXECUTORS, prepare_source
from rlbench.envs.make import make_collector
from rlbench.envs.source import EnvSource
from rlbench.envs.tensor_env import TensorEnvs
from rlbench.speedups import Choices


def collector_of(source: EnvSource, config: DQNConfig, choices: Choices, device: torch.device) -> Any:
    """A collector of NumPy arrays for the Python loop; the batched env itself for a loop that steps it on its own."""
    if choices.loop == "native":
        return EXECUTORS["native"](source, config.num_envs, config.seed, device)
    if choices.loop in ("tensors", "fused"):
        return TensorEnvs(source.batch(config.num_envs, config.seed, device), source.name)
    prepared = prepare_source(source, choices.features, choices.market_io)
    return make_collector(prepared, config.num_envs, config.seed, environments=choices.environments, device=device)
