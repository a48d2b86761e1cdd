"""Replay as a `collections.deque` of Python tuples: what most first DQNs are written with."""

from __future__ import annotations

from collections import deque

import numpy as np
import torch

from rlbench.batch import Transitions
from rlbench.buffers.rows import RowSpec, check_capacity


class DequeReplay:
    """One tuple a transition. Sampling walks to each row (a deque is a linked list of blocks) and gives lists of rows."""

    gives = "lists"

    def __init__(self, spec: RowSpec, capacity: int, device: str | torch.device = "cpu") -> None:
        del device  # rows stay Python objects on the host, wherever the network is
        self.spec, self.capacity = spec, check_capacity(capacity, spec)
        self.rows: deque[tuple] = deque(maxlen=self.capacity)
        self.head = 0  # the slot that the next row would take in a ring

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, rows: Transitions) -> None:
        """Append n rows, given as arrays whose first axis is n. They are copied."""
        for i in range(len(rows.action)):
            self.rows.append(
                (
                    np.array(rows.obs[i], np.float32),
                    int(rows.action[i]),
                    float(rows.reward[i]),
                    np.array(rows.next_obs[i], np.float32),
                    float(rows.terminated[i]),
                    float(rows.truncated[i]),
                    float(rows.discount[i]),
                    None if rows.next_mask is None else np.array(rows.next_mask[i], np.float32),
                )
            )
        self.head = (self.head + len(rows.action)) % self.capacity

    def sample(self, index: np.ndarray) -> Transitions:
        """The rows in slots `index` (B,) int64, each in 0 … len - 1, as lists of B items.

        A slot is numbered as in a ring, so that every replay gives the same rows for the same numbers.
        """
        size = len(self.rows)
        oldest = self.head if size == self.capacity else 0
        chosen = [self.rows[(slot - oldest) % size] for slot in index.tolist()]
        obs, action, reward, next_obs, terminated, truncated, discount, mask = map(list, zip(*chosen, strict=True))
        return Transitions(
            obs, action, reward, next_obs, terminated, truncated, discount, mask if self.spec.masked else None
        )
