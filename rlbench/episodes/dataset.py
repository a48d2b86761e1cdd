"""Which samples make a minibatch together, and in which order: a setting of what is learnt, not of how it is computed.

Where all states of a minibatch have as many legal actions, code that was written for one state can be batched without padding;
that is what the source's loader does. The price: rare counts make small minibatches, and the samples of one are alike, since how
much there is to choose from says much about a state. Evaluators of packed sets need none of it.

An epoch's order comes from the hash of (seed, epoch, sample): the same on every machine and for every way to take the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rlbench.batch import Decisions
from rlbench.minibatches import Rows, index_views, like_parts
from rlbench.random import Purpose, random_bits

Take = Callable[[Rows, np.ndarray, Sequence[int]], Iterator[Decisions]]  # a variant of the slot `minibatch`


class Shuffled:
    """Minibatches of any samples. A base of those that keep like samples together.

    Args:
        decisions: the M samples, or the `Rows` made of them.
        batch_size: samples in a minibatch, at most: a group is cut into like parts.
        seed: of the order.
        take: how rows are taken; a variant of the slot `minibatch`.
    """

    def __init__(self, decisions: Decisions | Rows, batch_size: int, seed: int = 0, take: Take = index_views) -> None:
        self.rows = decisions if isinstance(decisions, Rows) else Rows(decisions)
        self.batch_size, self.seed, self.take = batch_size, seed, take

    def group(self, counts: np.ndarray) -> np.ndarray:
        """The group (M,) of samples with `counts` (M,) legal actions: a minibatch is of one."""
        return np.zeros_like(counts)

    def order(self, epoch: int) -> tuple[np.ndarray, list[int]]:
        """(the samples' order (M,) int64, how many make each minibatch)."""
        count = len(self.rows)
        group = self.group(self.rows.counts if self.rows.packed else np.ones(count, np.int64))
        key = random_bits(self.seed, Purpose.MINIBATCH, epoch, np.arange(count))
        order = np.lexsort((key, group))  # by group, and in each by chance
        groups = np.unique(group, return_counts=True)[1].tolist()
        sizes = [part for size in groups for part in like_parts(size, self.batch_size)]
        if len(groups) < 2:
            return order, sizes
        parts = np.split(order, np.cumsum(sizes)[:-1])
        # Numbers behind those of samples, so that the order of minibatches has draws of its own.
        turn = np.argsort(
            random_bits(self.seed, Purpose.MINIBATCH, epoch, count + np.arange(len(parts))), kind="stable"
        )
        return np.concatenate([parts[k] for k in turn]), [len(parts[k]) for k in turn]

    def epoch(self, number: int) -> Iterator[Decisions]:
        """The minibatches of an epoch."""
        return self.take(self.rows, *self.order(number))

    def __len__(self) -> int:
        """Minibatches in an epoch."""
        return len(self.order(0)[1])


class GroupedByCount(Shuffled):
    """Minibatches of samples with equally many legal actions."""

    def group(self, counts: np.ndarray) -> np.ndarray:
        return counts


class Bucketed(Shuffled):
    """Minibatches of samples with about as many legal actions: 1, 2, 3 to 4, 5 to 8, 9 to 16, …."""

    def group(self, counts: np.ndarray) -> np.ndarray:
        return np.frexp(counts - 1.0)[1]  # the binary exponent: bits of counts - 1


ORDERS = {"shuffled": Shuffled, "grouped": GroupedByCount, "bucketed": Bucketed}
