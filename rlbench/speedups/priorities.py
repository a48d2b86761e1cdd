"""Priorities: how prioritised replay finds and changes its rows.

A sum tree draws one of n rows in log2(n) steps. Walked one path at a time, each step is a few operations of Python's, for every
row of every batch, on the way down and on the way up. Level by level in NumPy each step is a few calls for the whole batch,
however large. That helps large batches; of a small one the paths cost no more than the calls do (claim A9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rlbench.buffers import SumTreeLoop, SumTreeVectorised, to_uniform53
from rlbench.random import Purpose, random_bits
from rlbench.speedups.speedup import Speedup, check_equal

VARIANTS = {"loop": SumTreeLoop, "vectorised": SumTreeVectorised}
SLOTS = 10_000


def make_inputs(size: int, seed: int, device: str) -> tuple[np.ndarray, ...]:
    """Priorities of all slots, `size` ascending shares of their sum to look for, and `size` new priorities."""
    del device  # trees are the host's
    rng = np.random.default_rng(seed)
    bits = random_bits(seed, Purpose.REPLAY, np.zeros(1, np.int64), np.arange(2 * size, dtype=np.int64))
    share = (np.arange(size) + to_uniform53(bits)) / size
    return rng.exponential(size=SLOTS) ** 0.6, share, rng.exponential(size=size) ** 0.6


def bind(variant: Callable[..., Any], inputs: tuple[np.ndarray, ...]) -> Callable[[], tuple[torch.Tensor, ...]]:
    """Fill the tree; the call draws a batch and gives it new priorities, as one update does."""
    priority, share, changed = inputs
    tree = variant(SLOTS)
    tree.set(np.arange(SLOTS), priority)

    def draw_and_update() -> tuple[torch.Tensor, ...]:
        index = tree.find(share * tree.total)
        found = tree.get(index)
        tree.set(index, changed)
        return torch.from_numpy(index), torch.from_numpy(found), torch.tensor(tree.total)

    return draw_and_update


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if config is not None and config.prioritized_replay_alpha == 0.0:
        return (
            "prioritized_replay_alpha=0 samples uniformly, without priorities; set it above 0, or leave this slot out"
        )
    return None


SPEEDUP = Speedup(
    name="priorities",
    question="What does prioritised replay cost?",
    summary="All paths of a batch through the sum tree at once, level by level. Matters where batches are large.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check_equal,
    requires=requires,
    sameness="bitwise",
    sizes=(32, 128, 1024),
    size_means="rows in a batch",
    claims=("A9",),
)
