"""The update as PyTorch code reads, one operation after another."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from rlbench.batch import Transitions, Updated
from rlbench.config import DQNConfig
from rlbench.losses import next_values, td_error, td_loss, td_target
from rlbench.phases import phase
from rlbench.updates.precision import FLOAT32, Precision

MakeOptimizer = Callable[[list[Tensor], float], torch.optim.Optimizer]


class EagerUpdate:
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
        self.online, self.target, self.config, self.precision = online, target, config, precision
        self.parameters = list(online.parameters())
        self.optimizer = make_optimizer(self.parameters, config.learning_rate)
        self.scaler = torch.amp.GradScaler(precision.device_type, enabled=precision.scaled)
        self.calls = 0
        self.skipped: int | Tensor = 0  # a tensor () where steps may be skipped

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
            self.scaler.scale(loss).backward()
        with phase("optimizer"):
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            self.step()
        return Updated(loss.detach(), targets, error.detach())

    def step(self) -> None:
        """Clip and let Adam step. A scaled gradient is unscaled first, and one that is infinite is not stepped on."""
        self.calls += 1
        self.scaler.unscale_(self.optimizer)
        if self.config.max_grad_norm or self.precision.scaled:
            norm = clip_grad_norm_(self.parameters, self.config.max_grad_norm or math.inf)
            if self.precision.scaled:
                self.skipped = self.skipped + ~norm.isfinite()
        self.scaler.step(self.optimizer)  # sync: GradScaler asks whether to step, but for fused Adam
        self.scaler.update()

    @property
    def taken(self) -> int | Tensor:
        """Steps that were taken so far: those of Adam's own count."""
        return self.calls - self.skipped

    @torch.no_grad()
    def targets(self, batch: Transitions) -> Tensor:
        """Bellman targets (B,)."""
        with self.precision.forward():
            q_online = self.online(batch.next_obs) if self.config.double_dqn else None
            q_target = self.target(batch.next_obs)
        value = next_values(q_target.float(), q_online, batch.next_mask)
        return td_target(batch.reward, batch.discount, batch.terminated, value)
