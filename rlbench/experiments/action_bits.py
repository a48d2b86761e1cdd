"""What a faster way to make bits of ids brings (claim B1): for the bits alone, through a layer and back, in a whole update.

The farther the view, the less is seen of it: an update also encodes states, scores, takes a softmax, and steps Adam.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from rlbench.actions import BITS
from rlbench.evaluations.padded import Padded
from rlbench.measure import measure
from rlbench.models.encodings import Encode, bits_of, table_bits
from rlbench.results import Row
from rlbench.speedups import action_encoding, ppo_update
from rlbench.speedups.speedup import Speedup, check_equal, no_needs
from rlbench.updates.ppo_eager import PPOEager

ALONE, LAYER, UPDATE = "the bits alone", "through a layer and back", "a whole update"


def loop_bits(ids: Tensor) -> Tensor:
    """(A, 64) float32, one shift and one mask a bit, as `encode_loop` has them."""
    return torch.stack([(ids >> bit) & 1 for bit in range(BITS)], 1).float()


def encodings(sizes: Sequence[int], states: int, **arguments: Any) -> list[Row]:
    """Every encoding against the loop over bits, at `sizes` (ids), and in an update of a minibatch of `states` states.

    A row is one of `measure`, with `within`: the bits alone (where `fused`, which writes none, has no row), through a layer and
    back, or a whole update, whose size is the number of ids of its minibatch. `arguments` are those of `measure`.
    """
    rows = _measured(ALONE, bits_alone(), sizes, **arguments)
    rows += _measured(LAYER, action_encoding.SPEEDUP, sizes, **arguments)
    found = _measured(UPDATE, in_an_update(), [states], **arguments)
    _, batches = ppo_update.make_inputs(states, int(arguments.get("seed", 0)), "cpu")
    return rows + [{**row, "size": len(batches[0].legal.ids), "states": states} for row in found]


def _measured(within: str, speedup: Speedup, sizes: Sequence[int], **arguments: Any) -> list[Row]:
    found = measure([speedup.name], sizes=sizes, speedups={speedup.name: speedup}, **arguments)
    return [{**row, "within": within} for row in found]


def bits_alone() -> Speedup:
    """The slot without the layer: ids to (A, 64) float32."""
    return dataclasses.replace(
        action_encoding.SPEEDUP,
        variants={"loop": loop_bits, "shift": bits_of, "byte_table": table_bits},
        bind=lambda variant, inputs: lambda: variant(inputs[0]),
        check=check_equal,
        requires=no_needs,
        sameness="bitwise",
        size_means="ids",
    )


def in_an_update() -> Speedup:
    """The slot within PPO's eager update of minibatches, evaluated as plain() does."""
    return dataclasses.replace(
        action_encoding.SPEEDUP,
        make_inputs=ppo_update.make_inputs,
        bind=_update_with,
        check=ppo_update.check,
        requires=no_needs,
        size_means="states in a minibatch",
    )


def _update_with(encode: Encode, inputs: tuple) -> Callable[[], list[Tensor]]:
    model, batches = inputs
    model = copy.deepcopy(model)
    model.encode = encode
    return ppo_update.bind(
        lambda own, config, _, optimizer: PPOEager(own, config, Padded(own), optimizer), (model, batches)
    )


def bit_counts(ids: Tensor) -> list[int]:
    """How many bits each id (A,) int64 has."""
    return [int(count) for count in bits_of(ids).sum(1).tolist()]  # sync: for people
