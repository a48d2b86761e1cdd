"""One pass over samples, a minibatch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from rlbench.batch import Decisions, PPOUpdated
from rlbench.phases import phase


def update_epoch(
    apply_update: Any,
    minibatches: Callable[..., Iterator[Decisions]],
    source: Any,
    order: np.ndarray,
    sizes: Sequence[int],
    learning_rate: float,
    note: Callable[[PPOUpdated], None],
) -> PPOUpdated:
    """Update on K minibatches; in one call where the update takes its rows itself.

    Args:
        apply_update: a variant of the slot `ppo_update`, bound.
        minibatches: a variant of the slot `minibatch`.
        source: what a variant of the slot `upload` gave.
        order: (M,) rows of the samples, those of the first minibatch first.
        sizes: how many make each minibatch.
        note: told what an update gave, as it comes: fields () or, of several updates, (K,).

    Returns:
        What the updates gave, each field (K,).
    """
    if hasattr(apply_update, "epoch"):
        found = apply_update.epoch(source.rows.decisions, torch.from_numpy(order), sizes, learning_rate)
        note(found)
        return found
    each = []
    for batch in _ready(minibatches(source.rows, order, sizes), source):
        each.append(apply_update(batch, learning_rate))
        note(each[-1])
    return PPOUpdated(*map(torch.stack, zip(*each, strict=True)))


def _ready(taken: Iterator[Decisions], source: Any) -> Iterator[Decisions]:
    """Minibatches on the device, with what it takes to get them noted as phases."""
    while True:
        with phase("sample"):
            batch = next(taken, None)
        if batch is None:
            return
        with phase("transfer"):
            batch = source.ready(batch)
        yield batch
