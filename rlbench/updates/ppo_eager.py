"""The update of PPO as PyTorch code reads: evaluate, loss, backward, clip, Adam."""

from __future__ import annotations

from typing import Any

from torch import nn

from rlbench.batch import Decisions, PPOUpdated
from rlbench.config import PPOConfig
from rlbench.losses import ppo_loss
from rlbench.phases import phase
from rlbench.updates.ppo_parts import joined, parts_of
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
        parts = parts_of(batch, self.config)
        found = [self._gradients(part, share) for part, share in parts]
        with phase("optimizer"):
            self.step(learning_rate)
        return found[0] if len(found) == 1 else joined(found, [share for _, share in parts])

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
