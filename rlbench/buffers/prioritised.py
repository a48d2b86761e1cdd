"""Prioritised replay (Schaul et al., 2016), the proportional form: rows that surprised are drawn more often.

Row i has the priority p_i = (|td error| + eps)^alpha and is drawn with the probability P(i) = p_i / Σ p. Its loss is weighted by
w_i = (N · P(i))^-beta, which takes back the bias that such drawing brings in full once beta is 1.

Floor. `eps` keeps a row whose error was 0 in the draw. It is an absolute error, not a share of the others: with 1e-6, alpha 1
and errors of about 1, such a row is drawn once in a million. `eps` 0 is accepted: then such a row is not drawn until all are 0,
and where all priorities are 0 every row is as likely as any other.

Normalisation. Weights are divided by the largest of their own batch, so that the largest is 1 and steps only ever get smaller.
The largest of the whole replay would be that of its least likely row, (N · P_min)^-beta: one row at the floor, drawn or not,
would scale every other row's weight down to next to nothing in every batch. Here it does so where it is drawn, and there alone.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch

from rlbench.batch import Transitions
from rlbench.buffers.rows import ReplayError, spans


class SumTree(Protocol):
    """What `SumTreeLoop` and `SumTreeVectorised` both are."""

    @property
    def total(self) -> float: ...
    def get(self, index: np.ndarray) -> np.ndarray: ...
    def set(self, index: np.ndarray, priority: np.ndarray) -> None: ...
    def find(self, value: np.ndarray) -> np.ndarray: ...


def to_uniform53(bits: np.ndarray) -> np.ndarray:
    """Uniforms (B,) float64 in [0, 1) from 2 B words of 32 bits: 27 bits of word i, then 26 of word B + i, all exact.

    The 24 bits of `random.to_uniform` are too coarse for a sum over millions of priorities.
    """
    upper, lower = bits.reshape(2, -1)
    return ((upper >> 5) * 2.0**26 + (lower >> 6)) * 2.0**-53


class Prioritised:
    """Priorities beside a replay, slot for slot. Rows go in by `add` here; what `sample` draws is read from the replay itself.

    Args:
        replay: any replay of this package, still empty.
        tree: a sum tree with a leaf for each of its slots.
        alpha: exponent of priorities; 0 makes all equal.
        eps: what is added to the size of an error.
    """

    def __init__(self, replay: Any, tree: SumTree, alpha: float, eps: float) -> None:
        if len(replay):
            raise ReplayError(f"the replay holds {len(replay):,} rows without priorities already: give an empty one.")
        self.replay, self.tree, self.alpha, self.eps = replay, tree, alpha, eps
        self.largest = 1.0  # priority so far, which new rows get, so that each is drawn soon

    def __len__(self) -> int:
        return len(self.replay)

    def add(self, rows: Transitions) -> None:
        """Store n rows, each with the largest priority so far."""
        head = self.replay.head
        self.replay.add(rows)
        for slots, _ in spans(head, len(rows.action), self.replay.capacity):
            index = np.arange(slots.start, slots.stop, dtype=np.int64)
            self.tree.set(index, np.full(len(index), self.largest))

    def sample(self, uniforms: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
        """Slots and importance weights of a batch, one draw from each of B equal parts of Σ p (stratified).

        Args:
            uniforms: (B,) float64 in [0, 1), as `to_uniform53` makes them.
            beta: exponent of the weights.

        Returns:
            index (B,) int64 and weight (B,) float32, the largest of which is 1.
        """
        rows = len(self.replay)
        if not rows:
            raise ReplayError("there is nothing to sample: the replay holds no rows yet.")
        share = (np.arange(len(uniforms)) + uniforms) / len(uniforms)  # (B,) in [0, 1]: the last may round up
        total = self.tree.total
        if total <= 0.0:
            index = np.minimum((share * rows).astype(np.int64), rows - 1)
            return index, np.ones(len(index), np.float32)
        index = self.tree.find(share * total)
        priority = self.tree.get(index)
        # (N · p / Σp)^-beta over the largest of these: N and Σp cancel, and nothing can be divided by 0.
        return index, ((priority.min() / priority) ** beta).astype(np.float32)

    def update(self, index: np.ndarray, td_error: np.ndarray | torch.Tensor) -> None:
        """New priorities of slots `index` (B,) from their td errors (B,). Of a slot drawn twice the last one counts."""
        if isinstance(td_error, torch.Tensor):
            td_error = td_error.detach().cpu().numpy()  # sync: the tree is the host's
        priority = (np.abs(td_error, dtype=np.float64) + self.eps) ** self.alpha
        if not np.isfinite(priority).all():
            row = int(np.argmin(np.isfinite(priority)))
            raise ReplayError(
                f"td_error[{row}] is {td_error[row]}, which makes no priority: learning ran away; lower learning_rate."
            )
        self.tree.set(index, priority)
        self.largest = max(self.largest, float(priority.max()))
