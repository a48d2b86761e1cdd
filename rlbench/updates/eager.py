"""The update as PyTorch code reads, one operation after another."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rlbench.batch import Transitions, Updated
from rlbench.config import DQNConfig
from rlbench.losses import next_values, td_error, td_loss, td_target
from rlbench.phases import phase
from rlbench.updates.precision import FLOAT32, Precision
from rlbench.updates.stepper import MakeOptimizer, Stepper


class EagerUpdate(Stepper):
    """Forward, loss, backward, clipping, Adam."""

    chunk = 1
    build_s = 0.0
    recompiles = 0

    def __init__(
        self,
        online: nn.Module,
        target: nn.Module,
        config: DQNConfig,
        make_optimizer: MakeOptimizer,
        precision: Precision = FLOAT32,
    ) -> None:
        super().__init__(
            list(online.parameters()), make_optimizer, config.learning_rate, config.max_grad_norm, precision
        )
        self.online, self.target, self.config = online, target, config

    def __call__(self, batch: Transitions, learning_rate: float) -> Updated:
        """Update the online network on a minibatch."""
        with phase("forward"):
            targets = self.targets(batch)
            with self.precision.forward():
                q = self.online(batch.obs)
            error = td_error(q.float(), batch.action, targets)
            loss = td_loss(error, self.config.huber, batch.weight)
        with phase("backward"):
            self.optimizer.zero_grad(set_to_none=True)
            self.backward(loss)
        with phase("optimizer"):
            self.step(learning_rate)
        return Updated(loss.detach(), targets, error.detach())

    @torch.no_grad()
    def targets(self, batch: Transitions) -> Tensor:
        """Bellman targets (B,)."""
        with self.precision.forward():
            q_online = self.online(batch.next_obs) if self.config.double_dqn else None
            q_target = self.target(batch.next_obs)
        value = next_values(q_target.float(), q_online, batch.next_mask)
        return td_target(batch.reward, batch.discount, batch.terminated, value)
