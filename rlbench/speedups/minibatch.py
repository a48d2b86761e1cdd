"""Minibatch: how a minibatch's rows are taken from a rollout.

The sources keep a list of samples and stack those of a minibatch one by one: some Python calls for every sample, in every epoch.
Rows that lie in one tensor a field are gathered in one call a field: for the whole epoch at once (`copies`, whose minibatches are
slices) or for each minibatch when its turn comes (`index_views`, which moves the same bytes but keeps a minibatch in the
cache, and needs no memory for a second rollout). `by_count` sorts the rows of a minibatch by their number of actions
besides, as loaders do that bucket by length; since what goes into a minibatch stays the same, its longest set and its groups do,
too, and there is little that sorting could help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Decisions
from rlbench.minibatches import Rows, by_count, copies, index_views, like_parts, stack_samples
from rlbench.speedups.speedup import Speedup, check_equal

VARIANTS = {"stack_samples": stack_samples, "copies": copies, "index_views": index_views, "by_count": by_count}
BATCH = 256
FEATURES = 128  # an 8x8 board's
MOST_ACTIONS = 20


def random_decisions(size: int, seed: int, device: str) -> Decisions:
    """Decisions among 1 to 20 actions; `target` numbers them."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, MOST_ACTIONS + 1, size)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    ids = rng.integers(-(2**63), 2**63, offsets[-1], np.int64)
    obs = rng.integers(0, 2, (size, FEATURES)).astype(np.float32)
    floats = [rng.standard_normal(size, np.float32) for _ in range(3)]
    fields = (obs, rng.integers(0, counts), *floats, np.arange(size, dtype=np.float32))
    tensors = [torch.from_numpy(field).to(device) for field in fields]
    legal = ActionSets(torch.from_numpy(ids), torch.from_numpy(offsets)).to(device)
    return Decisions(tensors[0], legal, *tensors[1:])


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """The rows of a rollout, an order, and like parts."""
    order = np.random.default_rng(seed + 1).permutation(size)
    return Rows(random_decisions(size, seed, device)), order, like_parts(size, BATCH)


def bind(variant: Callable[..., Iterator[Decisions]], inputs: tuple) -> Callable[[], list[Tensor]]:
    """The call takes an epoch's minibatches and hands out all of their tensors. A list of samples is made beforehand."""
    rows, order, sizes = inputs
    if variant is stack_samples:
        _ = rows.samples
    return lambda: [tensor for batch in variant(rows, order, sizes) for tensor in tensors_of(batch)]


def tensors_of(batch: Decisions) -> list[Tensor]:
    """Ids and offsets, then the other fields."""
    return [*batch.legal, batch.obs, *batch[2:]]


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """The same rows in each minibatch, bit by bit, in any order within it."""
    assert len(expected) == len(actual), f"{len(expected)} tensors against {len(actual)}"
    for one, other in zip(expected, actual, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, (
            f"{one.dtype} {one.shape}, {other.dtype} {other.shape}"
        )
    for k in range(0, len(expected), 8):
        check_equal(_in_order(expected[k : k + 8]), _in_order(actual[k : k + 8]))


def _in_order(tensors: list[Tensor]) -> list[Tensor]:
    """A minibatch's tensors, its rows sorted by their number."""
    ids, offsets, *fields = tensors
    index = fields[-1].argsort()
    return [*ActionSets(ids, offsets).take(index), *(field[index] for field in fields)]


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if choices is not None and choices.ppo_update == "native":
        return "ppo_update='native' takes its rows itself; leave this slot out"
    if variant == "by_count" and env is not None and env.game is None:
        return "every state has as many actions; accepted here: stack_samples, copies, index_views"
    return None


SPEEDUP = Speedup(
    name="minibatch",
    question="What does it cost to make minibatches of a rollout?",
    summary="One call a field instead of some for every sample. Sorting by count inside a minibatch changes little.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="bitwise",
    sizes=(256, 4096, 16384),
    size_means=f"decisions in a rollout, in minibatches of {BATCH}",
    workloads=("ppo",),
    claims=("A9", "A10", "B17"),
)
