"""PPO's update as one pure function of tensors, on minibatches whose shapes are bucketed.

Rows that fill a minibatch up have advantage 0, ratio 1, entropy 0 and a value that is its target: they add nothing to any sum,
and means over all R rows become those over the B real ones by the factor R / B.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value

from rlbench.actions import ActionSets
from rlbench.batch import Decisions, Evaluated, PPOUpdated
from rlbench.config import PPOConfig
from rlbench.evaluations.buckets import bucketed, fill_up, row_bucket
from rlbench.evaluations.compiled import PackedPolicy, packed_network
from rlbench.evaluations.dense import Dense
from rlbench.evaluations.views import counts_of
from rlbench.losses import ppo_loss
from rlbench.models.action_scorer import ActionScorer
from rlbench.updates.functional import FlatNetwork, Moments, adam, clipped
from rlbench.updates.precision import FLOAT32, Precision


class PPOSettings(NamedTuple):
    """What is fixed while training, and so becomes part of a compiled function."""

    clip_coef: float
    ent_coef: float
    vf_coef: float
    norm_adv: bool
    clip_vloss: bool
    max_grad_norm: float  # 0 clips nothing
    precision: Precision = FLOAT32

    @classmethod
    def of(cls, config: PPOConfig, precision: Precision = FLOAT32) -> PPOSettings:
        return cls(*(getattr(config, name) for name in cls._fields[:-1]), precision)


class DensePolicy(nn.Module):
    """An actor-critic over a fixed number of actions as a function of a mask (R, A), or None."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, obs: Tensor, legal: Tensor | None, choice: Tensor) -> Evaluated:
        return Dense(self.model).evaluate(obs, legal, choice)


def policy_of(model: nn.Module) -> tuple[nn.Module, FlatNetwork]:
    """(a module with the model's own parameters, its structure): of bucketed minibatches, to `Evaluated`."""
    if isinstance(model, ActionScorer):
        return PackedPolicy(model), packed_network(model)
    policy = DensePolicy(model)
    return policy, FlatNetwork(policy)


def on_bucket(batch: Decisions) -> Decisions:
    """The minibatch filled up to bucketed shapes; packed sets become `Bucketed` ones."""
    rows = row_bucket(len(batch.choice))
    if isinstance(batch.legal, ActionSets):
        counts_of(batch.obs, batch.legal)
        legal: Any = bucketed(batch.legal, rows)
    else:
        legal = None if batch.legal is None else fill_up(batch.legal, rows, True)
    others = {name: fill_up(getattr(batch, name), rows) for name in Decisions._fields if name != "legal"}
    return Decisions(legal=legal, **others)


def ppo_gradient(
    network: FlatNetwork, parameters: Tensor, batch: Decisions, rows: Tensor, settings: PPOSettings
) -> tuple[Tensor, PPOUpdated]:
    """The gradient (P,) of PPO's loss, mean over the minibatch, and what a trainer reads.

    Args:
        parameters: (P,)
        batch: of R rows, from `on_bucket`.
        rows: () float32, how many of them are real.
    """

    def loss_of(views: dict[str, Tensor]) -> tuple[Tensor, PPOUpdated]:
        with settings.precision.forward():
            now = functional_call(network.module, views, (batch.obs, batch.legal, batch.choice))
        updated = padded_loss(now, batch, rows, settings)
        return updated.loss, updated

    gradients, (loss, updated) = grad_and_value(loss_of, has_aux=True)(network.views(parameters.detach()))
    return network.join(gradients), updated._replace(loss=loss.detach())


def padded_loss(now: Evaluated, batch: Decisions, rows: Tensor, settings: PPOSettings) -> PPOUpdated:
    """`losses.ppo_loss` over the first `rows` of R rows."""
    size = len(batch.choice)
    real = torch.arange(size, device=batch.choice.device) < rows
    neutral = (
        batch.log_prob,
        torch.zeros_like(now.entropy),
        batch.value,
    )  # of rows where log_prob, value and target are 0
    now = Evaluated(*(torch.where(real, one, other) for one, other in zip(now, neutral, strict=True)))
    if settings.norm_adv:
        batch = batch._replace(advantage=normalised_real(batch.advantage, real, rows))
    updated = ppo_loss(
        now,
        batch,
        settings.clip_coef,
        settings.ent_coef,
        settings.vf_coef,
        norm_adv=False,
        clip_vloss=settings.clip_vloss,
    )
    return PPOUpdated(*(part * (size / rows) for part in updated))._replace(ratio_error=updated.ratio_error)


def normalised_real(advantage: Tensor, real: Tensor, rows: Tensor) -> Tensor:
    """`losses.normalised` of the real rows; 0 in the others."""
    apart = torch.where(real, advantage - advantage.sum() / rows, 0.0)  # what fills up is 0 in the sum
    std = (apart.square().sum() / (rows - 1)).sqrt()
    return torch.where(rows < 2, advantage, apart / (std + 1e-8))


def ppo_update(
    network: FlatNetwork,
    parameters: Tensor,
    moments: Moments,
    step: Tensor,
    batch: Decisions,
    rows: Tensor,
    learning_rate: Tensor,
    settings: PPOSettings,
) -> tuple[Tensor, Moments, PPOUpdated]:
    """One step of Adam on PPO's loss of a minibatch. Nothing is changed in place, nothing read on the host.

    Args:
        parameters: (P,)
        step: () int64, the number of this update, from 1.
        batch: of R rows, from `on_bucket`.
        rows: () float32, how many of them are real.
        learning_rate: () float64.

    Returns:
        (parameters, moments, what a trainer reads).
    """
    gradient, updated = ppo_gradient(network, parameters, batch, rows, settings)
    gradient = clipped(gradient, settings.max_grad_norm)
    parameters, moments = adam(parameters.detach(), moments, gradient, step, learning_rate)
    return parameters, moments, updated
