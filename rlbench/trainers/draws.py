"""Which rows of replay a minibatch takes: all equally likely, or by priority."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.buffers import Prioritised, to_uniform53
from rlbench.config import DQNConfig
from rlbench.random import Purpose, Stream
from rlbench.trainers.schedule import linear


class Uniform:
    """Drawn with replacement; several minibatches at once where an update takes several."""

    def __init__(self, config: DQNConfig, replay: object, chunk: int) -> None:
        self.replay, self.chunk = replay, chunk
        self.stream = Stream(config.seed, Purpose.REPLAY, config.batch_size)

    def add(self, rows: Transitions) -> None:
        self.replay.add(rows)

    def slots(self, updates: int, env_steps: int) -> np.ndarray:
        """Slots (chunk * B,) int64 for the updates after the first `updates`."""
        if self.chunk == 1:
            return self.stream.below(updates, len(self.replay))
        return np.concatenate([self.stream.below(updates + k, len(self.replay)) for k in range(self.chunk)])

    def weighted(self, batch: Transitions) -> Transitions:
        return batch

    def learn(self, td_error: Tensor) -> None:
        """What the last minibatch's errors were: nothing to a draw that treats all rows alike."""


class ByPriority:
    """Drawn by priority, with the importance weights that make up for it. Their exponent rises to 1 over the training."""

    def __init__(self, config: DQNConfig, replay: object, tree: object, device: torch.device) -> None:
        self.config, self.device = config, device
        self.rows = Prioritised(replay, tree, config.prioritized_replay_alpha, config.prioritized_replay_eps)
        self.stream = Stream(config.seed, Purpose.REPLAY, 2 * config.batch_size)
        self.add = self.rows.add
        self.index = self.weight = np.empty(0)  # (B,) of the last minibatch

    def slots(self, updates: int, env_steps: int) -> np.ndarray:
        beta = linear(self.config.prioritized_replay_beta, 1.0, self.config.total_timesteps, env_steps)
        self.index, self.weight = self.rows.sample(to_uniform53(self.stream.bits(updates)), beta)
        return self.index

    def weighted(self, batch: Transitions) -> Transitions:
        return batch._replace(weight=torch.from_numpy(self.weight).to(self.device))

    def learn(self, td_error: Tensor) -> None:
        """Give the last minibatch's rows the priorities of their errors (B,)."""
        self.rows.update(self.index, td_error)
