"""The update of PPO as PyTorch code reads: evaluate, loss, backward, clip, Adam."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn

from rlbench.actions import ActionSets
from rlbench.batch import Decisions, PPOUpdated
from rlbench.config import PPOConfig
from rlbench.losses import normalised, ppo_loss
from rlbench.phases import phase
from rlbench.updates.precision import FLOAT32, Precision
from rlbench.updates.stepper import MakeOptimizer, Stepper


class PPOEager(Stepper):
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
        parameters = list(model.parameters())
        super().__init__(parameters, make_optimizer, config.learning_rate, config.max_grad_norm, precision)
        self.config, self.evaluator = config, evaluator

    def __call__(self, batch: Decisions, learning_rate: float) -> PPOUpdated:
        """Update the policy on a minibatch."""
        self.optimizer.zero_grad(set_to_none=True)
        parts = self._parts(batch)
        found = [self._gradients(part, share) for part, share in parts]
        with phase("optimizer"):
            self.step(learning_rate)
        return found[0] if len(found) == 1 else _joined(found, [share for _, share in parts])

    def _parts(self, batch: Decisions) -> list[tuple[Decisions, float]]:
        """The parts of a minibatch, with their shares of its rows. Advantages are normalised over the whole."""
        count = min(self.config.gradient_accumulation, len(batch.choice))
        if count == 1:
            return [(batch, 1.0)]
        if self.config.norm_adv:
            batch = batch._replace(advantage=normalised(batch.advantage))
        rows = len(batch.choice)
        bounds = [rows * k // count for k in range(count + 1)]
        return [(rows_of(batch, a, b), (b - a) / rows) for a, b in pairwise(bounds)]

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
            self.backward(updated.loss * share)
        return updated._replace(loss=updated.loss.detach())


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
