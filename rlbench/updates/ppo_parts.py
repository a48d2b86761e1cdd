"""A minibatch cut into parts that are computed one after another, to save memory (gradient accumulation)."""

from __future__ import annotations

from itertools import pairwise

import torch

from rlbench.actions import ActionSets
from rlbench.batch import Decisions, PPOUpdated
from rlbench.config import PPOConfig
from rlbench.losses import normalised


def parts_of(batch: Decisions, config: PPOConfig) -> list[tuple[Decisions, float]]:
    """The parts of like length with their shares of the rows: gradients times shares add up to that of the whole.

    One part is the minibatch itself. In several, advantages are normalised over the whole, where they are to be.
    """
    rows = len(batch.choice)
    count = min(config.gradient_accumulation, rows)
    if count < 2:
        return [(batch, 1.0)]
    if config.norm_adv:
        batch = batch._replace(advantage=normalised(batch.advantage))
    bounds = [rows * k // count for k in range(count + 1)]
    legal = _cut(batch.legal, bounds)
    others = [name for name in Decisions._fields if name != "legal"]
    return [
        (Decisions(legal=sets, **{name: getattr(batch, name)[a:b] for name in others}), (b - a) / rows)
        for (a, b), sets in zip(pairwise(bounds), legal, strict=True)
    ]


def _cut(legal: ActionSets | torch.Tensor | None, bounds: list[int]) -> list:
    """Action sets or masks of the rows between bounds."""
    if legal is None:
        return [None] * (len(bounds) - 1)
    if not isinstance(legal, ActionSets):
        return [legal[a:b] for a, b in pairwise(bounds)]
    starts = legal.offsets[torch.tensor(bounds, device=legal.offsets.device)].tolist()  # sync: the sizes of the parts
    spans = zip(pairwise(bounds), pairwise(starts), strict=True)
    return [ActionSets(legal.ids[i:j], legal.offsets[a : b + 1] - i) for (a, b), (i, j) in spans]


def joined(found: list[PPOUpdated], shares: list[float]) -> PPOUpdated:
    """The numbers of a minibatch from those of its parts: means by share, but for the largest ratio."""
    means = [sum(share * part for share, part in zip(shares, field, strict=True)) for field in zip(*found, strict=True)]
    return PPOUpdated(*means)._replace(ratio_error=torch.stack([part.ratio_error for part in found]).max())
