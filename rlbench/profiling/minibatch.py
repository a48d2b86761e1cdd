"""How many transitions an update learns from, by the products that the counting pass saw; reading them from arrays."""

from __future__ import annotations

import numpy as np
import torch

from rlbench.profiling.records import Counted, Product

ONE_BY_ONE = 8  # passes an update; a few are several networks, or several losses


def passes_of(counted: Counted | None) -> int:
    """Forward passes with gradients an update: 1 where a minibatch goes through at once, its size where rows go one by one."""
    first = _first_layer(counted)
    if first is None or not counted.updates:
        return 1
    return max(1, round(sum(product.calls for product in first) / counted.updates))


def minibatch_of(counted: Counted | None) -> int:
    """Transitions in an update; 0 where nothing is learnt."""
    first = _first_layer(counted)
    if first is None:
        return 0
    passes = passes_of(counted)
    return max(first, key=lambda product: product.calls).batch * (passes if passes >= ONE_BY_ONE else 1)


def _first_layer(counted: Counted | None) -> list[Product] | None:
    """The products of one layer of the network that learns, those of all minibatches: the first that was seen."""
    learning = [p for p in (counted.products if counted else ()) if p.learning and p.phase != "action"]
    if not learning:
        return None
    shape = learning[0].inputs, learning[0].outputs
    return [product for product in learning if (product.inputs, product.outputs) == shape]


class Gather:
    """Reads a minibatch of transitions from arrays by index: two observations of `width` numbers, action, reward and end."""

    def __init__(self, batch: int, width: int, rows: int = 10_000) -> None:
        self.batch, self.draw = batch, np.random.default_rng(0)
        rows = max(1, min(rows, 20_000_000 // width))
        self.fields = [np.zeros((rows, width), np.float32) for _ in range(2)] + [
            np.zeros(rows, np.float32) for _ in range(3)
        ]
        self.count = rows

    def __call__(self) -> list[torch.Tensor]:
        indices = self.draw.integers(0, self.count, self.batch)
        return [torch.from_numpy(values[indices]) for values in self.fields]
