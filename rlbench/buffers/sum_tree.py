"""Sum trees: draw one of many slots with a probability proportional to its priority, in log2(slots) steps.

A binary tree in an array: node i has the children 2i and 2i + 1, node 1 is the root, the leaves hold the priorities, and every
other node the sum of its children (Schaul et al., 2016, appendix B.2.1). A sum is computed afresh from its two children, never
by adding a difference, so that no error builds up and the order of updates leaves no trace: both trees hold the same bits.

To find the slot of a value v in [0, total): go left where v is below the left child's sum, else right with v less that sum.
Rounding can lead to a side where all is zero; there the way is to the other one, so a priority of 0 is never drawn while there is
another.
"""

from __future__ import annotations

import numpy as np

FEW = 3  # slots below which each path is walked by itself
DENSE_BELOW = 512  # levels of fewer nodes are summed whole: one call without gathers


def leaves_for(capacity: int) -> int:
    """The power of two that `capacity` slots fit into."""
    return 1 << (capacity - 1).bit_length()


class SumTreeLoop:
    """One path at a time, in Python: a list of floats."""

    def __init__(self, capacity: int) -> None:
        self.leaves = leaves_for(capacity)
        self.tree = [0.0] * (2 * self.leaves)

    @property
    def total(self) -> float:
        return self.tree[1]

    def nodes(self) -> np.ndarray:
        """A copy of all nodes (2 * leaves,) float64; the first is not used."""
        return np.array(self.tree)

    def get(self, index: np.ndarray) -> np.ndarray:
        """The priorities (B,) float64 of slots `index` (B,) int64."""
        return np.array([self.tree[self.leaves + slot] for slot in index.tolist()], np.float64)

    def set(self, index: np.ndarray, priority: np.ndarray) -> None:
        """Give slots `index` (B,) int64 the priorities (B,) float64, none negative. Of a slot named twice the last one counts."""
        tree = self.tree
        for slot, value in zip(index.tolist(), priority.tolist(), strict=True):  # sync: none, these are NumPy's
            node = self.leaves + slot
            tree[node] = value
            while node > 1:
                node >>= 1
                tree[node] = tree[2 * node] + tree[2 * node + 1]

    def find(self, value: np.ndarray) -> np.ndarray:
        """The slots (B,) int64 in which the values (B,) float64, from 0 to below `total`, fall. `total` must be above 0."""
        return np.array([self._descend(v) for v in value.tolist()], np.int64)  # sync: none, NumPy's

    def _descend(self, value: float) -> int:
        tree, node = self.tree, 1
        while node < self.leaves:
            node *= 2
            left = tree[node]
            if value >= left and tree[node + 1] > 0.0:
                value -= left
                node += 1
        return node - self.leaves


class SumTreeVectorised:
    """All paths at once, level by level, in NumPy."""

    def __init__(self, capacity: int) -> None:
        self.leaves = leaves_for(capacity)
        self.depth = self.leaves.bit_length() - 1
        self.tree = np.zeros(2 * self.leaves)
        self.levels = [self.tree[1 << k : 2 << k] for k in range(self.depth + 1)]  # views, the root first

    @property
    def total(self) -> float:
        return float(self.tree[1])

    def nodes(self) -> np.ndarray:
        """A copy of all nodes (2 * leaves,) float64; the first is not used."""
        return self.tree.copy()

    def get(self, index: np.ndarray) -> np.ndarray:
        """The priorities (B,) float64 of slots `index` (B,) int64."""
        return self.levels[-1].take(index)

    def set(self, index: np.ndarray, priority: np.ndarray) -> None:
        """Give slots `index` (B,) int64 the priorities (B,) float64, none negative. Of a slot named twice the last one counts.

        A node above two changed leaves is summed twice, with the same outcome: cheaper than to look for those.
        """
        self.levels[-1][index] = priority  # NumPy assigns in order, so the last one stays
        if len(index) < FEW:
            return self._climb(index)
        for k in range(self.depth - 1, -1, -1):
            below, level = self.levels[k + 1], self.levels[k]
            if len(level) < DENSE_BELOW:
                np.add(below[0::2], below[1::2], out=level)
            else:
                index = index >> 1
                pairs = below.reshape(-1, 2).take(index, 0)  # (B, 2)
                level[index] = pairs[:, 0] + pairs[:, 1]
        return None

    def _climb(self, index: np.ndarray) -> None:
        """Sum the few paths above leaves `index` one by one: new rows mostly come in ones, and a call costs what a path does."""
        tree = self.tree
        for slot in index.tolist():
            node = (self.leaves + slot) >> 1
            while node:
                tree[node] = tree[2 * node] + tree[2 * node + 1]
                node >>= 1

    def find(self, value: np.ndarray) -> np.ndarray:
        """The slots (B,) int64 in which the values (B,) float64, from 0 to below `total`, fall. `total` must be above 0.

        The way is found without a look at the right-hand sums. Where it ended on a zero it is found once more with it.
        """
        slots = self._descend(value)
        lost = self.get(slots) == 0.0
        if lost.any():
            slots[lost] = self._descend(value[lost], careful=True)
        return slots

    def _descend(self, value: np.ndarray, careful: bool = False) -> np.ndarray:
        node = np.ones(len(value), np.int64)
        for _ in range(self.depth):
            node = node + node
            left = self.tree.take(node)
            right = value >= left
            if careful:
                right &= self.tree.take(node + 1) > 0.0
            value = value - left * right
            node += right
        return node - self.leaves
