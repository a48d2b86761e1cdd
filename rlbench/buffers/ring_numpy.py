"""Replay as preallocated NumPy arrays, one a field, overwritten in a ring."""

from __future__ import annotations

import numpy as np
import torch

from rlbench.batch import Transitions
from rlbench.buffers.rows import RowSpec, check_capacity, spans


class RingNumpy:
    """Memory is taken once; a batch is one fancy index a field."""

    gives = "arrays"

    def __init__(self, spec: RowSpec, capacity: int, device: str | torch.device = "cpu") -> None:
        del device  # NumPy's memory is the host's, wherever the network is
        self.spec, self.capacity = spec, check_capacity(capacity, spec)
        self.size = self.head = 0
        n, scalars = self.capacity, (self.capacity,)
        self.fields = Transitions(
            obs=np.zeros((n, spec.obs_size), np.float32),
            action=np.zeros(scalars, np.int64),
            reward=np.zeros(scalars, np.float32),
            next_obs=np.zeros((n, spec.obs_size), np.float32),
            terminated=np.zeros(scalars, np.float32),
            truncated=np.zeros(scalars, np.float32),
            discount=np.zeros(scalars, np.float32),
            next_mask=np.zeros((n, spec.num_actions), np.float32) if spec.masked else None,
        )

    def __len__(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        """Memory that the rows take."""
        return sum(field.nbytes for field in self.fields if field is not None)

    def add(self, rows: Transitions) -> None:
        """Write n rows, given as arrays whose first axis is n, over the oldest ones."""
        count = len(rows.action)
        if count == 1:  # one env: plain item assignment costs half of what slices do
            for stored, new in zip(self.fields, rows, strict=True):
                if stored is not None:
                    stored[self.head] = new[0]
        else:
            for slots, which in spans(self.head, count, self.capacity):
                for stored, new in zip(self.fields, rows, strict=True):
                    if stored is not None:
                        stored[slots] = new[which]
        self.head = (self.head + count) % self.capacity
        self.size = min(self.size + count, self.capacity)

    def sample(self, index: np.ndarray) -> Transitions:
        """Copies of the rows in slots `index` (B,) int64, each in 0 … len - 1, as arrays."""
        return Transitions(*(None if field is None else field.take(index, 0) for field in self.fields))
