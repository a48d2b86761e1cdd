"""The update of PPO as PyTorch code reads: evaluate, loss, backward, clip, Adam."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from rlbench.actions import ActionSets
from rlbench.batch import Decisions, PPOUpdated
from rlbench.config import PPOConfig
from rlbench.losses import normalised, ppo_loss
from rlbench.phases import phase
from rlbench.updates.eager import MakeOptimizer
from rlbench.updates.precision import FLOAT32, Precision


class PPOEager:
    """One minibatch at a time, computed whole or, to save memory, in parts whose gradients add up to the same.

    Args:
        model: what `evaluator` asks.
        evaluator: `evaluate(obs, legal, choice) -> Evaluated`; see `rlbench.evaluations`.
    """

    build_s = 0.0
    recompiles = 0

    def __init__(
        self,
        model: nn.Module,
        config: PPOConfig,
        evaluator: Any,
        make_optimizer: MakeOptimizer,
        precision: Precision = FLOAT32,
    ) -> None:
        self.config, self.evaluator, self.precision = config, evaluator, precision
        self.parameters = list(model.parameters())
        self.optimizer = make_optimizer(self.parameters, config.learning_rate)
        self.scaler = torch.amp.GradScaler(precision.device_type, enabled=precision.scaled)
        self.skipped: int | Tensor = 0  # a tensor () where steps may be skipped

    def __call__(self, batch: Decisions, learning_rate: float) -> PPOUpdated:
        """Update the policy on a minibatch."""
        self.optimizer.zero_grad(set_to_none=True)
        found = [self._gradients(part, share) for part, share in self._parts(batch)]
        with phase("optimizer"):
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            self._step()
        return found[0] if len(found) == 1 else _joined(found, [share for _, share in self._parts(batch)])

    def _parts(self, batch: Decisions) -> list[tuple[Decisions, float]]:
        """The parts of a minibatch, with their shares of its rows. Advantages are normalised over the whole."""
        count = min(self.config.gradient_accumulation, len(batch.choice))
        if count == 1:
            return [(batch, 1.0)]
        if self.config.norm_adv:
            batch = batch._replace(advantage=normalised(batch.advantage))
        rows = len(batch.choice)
        bounds = [rows * k // count for k in range(count + 1)]
        return [(rows_of(batch, a, b), (b - a) / rows) for a, b in zip(bounds, bounds[1:], strict=False)]

    def _gradients(self, batch: Decisions, share: float) -> PPOUpdated:
        config = self.config
        with phase("forward"):
            with self.precision.forward():
                now = self.evaluator.evaluate(batch.obs, batch.legal, batch.choice)
            updated = ppo_loss(
                now,
                batch,
                config.clip_coef,
                config.ent_coef,
                config.vf_coef,
                config.norm_adv and share == 1.0,
                config.clip_vloss,
            )
        with phase("backward"):
            self.scaler.scale(updated.loss * share).backward()
        return updated._replace(loss=updated.loss.detach())

    def _step(self) -> None:
        """Clip and let Adam step. A scaled gradient is unscaled first, and one that is infinite is not stepped on."""
        self.scaler.unscale_(self.optimizer)
        if self.config.max_grad_norm or self.precision.scaled:
            norm = clip_grad_norm_(self.parameters, self.config.max_grad_norm or math.inf)
            if self.precision.scaled:
                self.skipped = self.skipped + ~norm.isfinite()
        self.scaler.step(self.optimizer)  # sync: GradScaler asks whether to step, but for fused Adam
        self.scaler.update()


def rows_of(batch: Decisions, first: int, last: int) -> Decisions:
    """Rows `first` to `last`, the latter left out."""
    legal = batch.legal
    if isinstance(legal, ActionSets):
        legal = legal.slice(first, last)
    elif legal is not None:
        legal = legal[first:last]
    tensors = {name: getattr(batch, name)[first:last] for name in Decisions._fields if name != "legal"}
    return Decisions(legal=legal, **tensors)


def _joined(found: list[PPOUpdated], shares: list[float]) -> PPOUpdated:
    """The numbers of a minibatch from those of its parts: means by share, but for the largest ratio."""
    means = [sum(share * part for share, part in zip(shares, field, strict=True)) for field in zip(*found, strict=True)]
    return PPOUpdated(*means)._replace(ratio_error=torch.stack([part.ratio_error for part in found]).max())
