"""Upload: how often a rollout that was collected on the host goes over to the device.

Each epoch uses every row once. A minibatch at a time, a round of E epochs copies the rollout E times, in pieces, and gathers
them on the host; moved once, rows are gathered on the device (claims A2, B14), which costs the memory of one rollout there. How a
copy is made is the slot `transfer`. Rows that were collected on the device are not uploaded at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Decisions
from rlbench.minibatches import Rows, index_views, like_parts
from rlbench.speedups.minibatch import random_decisions, tensors_of
from rlbench.speedups.speedup import Speedup, check_equal
from rlbench.speedups.transfer import on_device_already, pageable

Transfer = Callable[[Any, torch.device], Any]  # a variant of the slot `transfer`
BATCH = 256


class Source(NamedTuple):
    """Where minibatches come from: `for batch in minibatch(source.rows, order, sizes): update(source.ready(batch))`."""

    rows: Rows  # what minibatches are taken from
    ready: Callable[[Decisions], Decisions]  # brings one to the device


def per_minibatch(decisions: Decisions, device: torch.device, transfer: Transfer) -> Source:
    """The rollout stays where it is; each minibatch goes over by itself, in every epoch."""
    return Source(Rows(decisions), lambda batch: transfer(batch, device))


def whole_rollout_once(decisions: Decisions, device: torch.device, transfer: Transfer) -> Source:
    """The rollout goes over once; minibatches are taken there. Counts stay on the host, where they are known."""
    on_host = isinstance(decisions.legal, ActionSets) and not decisions.legal.offsets.is_cuda
    counts = np.diff(decisions.legal.offsets.numpy()) if on_host else None  # sync: none, it lies on the host
    return Source(Rows(transfer(decisions, device), counts), lambda batch: batch)


VARIANTS = {"per_minibatch": per_minibatch, "whole_rollout_once": whole_rollout_once}


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """Decisions on the host, and the orders of four epochs."""
    rng = np.random.default_rng(seed)
    return random_decisions(size, seed, "cpu"), torch.device(device), [rng.permutation(size) for _ in range(4)]


def bind(variant: Callable[..., Source], inputs: tuple) -> Callable[[], list[Tensor]]:
    """The call brings a rollout over for four epochs and hands out the last one's minibatches."""
    decisions, device, orders = inputs
    sizes = like_parts(len(decisions.obs), BATCH)

    def epochs() -> list[Tensor]:
        source, batches = variant(decisions, device, pageable), []
        for order in orders:
            batches = [source.ready(batch) for batch in index_views(source.rows, order, sizes)]
        return [tensor for batch in batches for tensor in tensors_of(batch)]

    return epochs


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant != "per_minibatch" and device.type != "cuda":
        return "nothing is transferred on the CPU; accepted here: per_minibatch"
    return on_device_already(choices, device, env)


SPEEDUP = Speedup(
    name="upload",
    question="How often does a rollout go to the device?",
    summary="Once a round instead of once an epoch in pieces. Only where there is a device to copy to.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check_equal,
    requires=requires,
    sameness="bitwise",
    sizes=(1024, 16384),
    size_means=f"decisions in a rollout, four epochs in minibatches of {BATCH}",
    workloads=("ppo",),
    claims=("A2", "B14"),
)
