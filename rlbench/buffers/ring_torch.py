"""Replay as one preallocated tensor on the training device: a row is one transition, a batch is one gather."""

from __future__ import annotations

import numpy as np
import torch

from rlbench.batch import Transitions
from rlbench.buffers.rows import SCALARS, RowSpec, check_capacity, spans


class RingTorch:
    """Rows are packed obs | next_obs | action, reward, terminated, truncated, discount | next_mask, all float32.

    An action survives float32 exactly, being far below 2^24. `index_select` over packed rows touches each sampled row once,
    and leaves a tensor whose columns are views.
    """

    gives = "tensors"

    def __init__(self, spec: RowSpec, capacity: int, device: str | torch.device = "cpu") -> None:
        self.spec, self.device = spec, torch.device(device)
        self.capacity = check_capacity(capacity, spec, device)
        self.size = self.head = 0
        self.widths = [spec.obs_size, spec.obs_size, len(SCALARS), spec.mask_size]
        self.rows = torch.zeros((self.capacity, sum(self.widths)), dtype=torch.float32, device=self.device)
        on_host = self.device.type == "cpu"
        self._host = self.rows.numpy() if on_host else None  # sync: a view of host memory, nothing is copied

    def __len__(self) -> int:
        return self.size

    def add(self, rows: Transitions) -> None:
        """Write n rows, given as host arrays whose first axis is n, over the oldest ones. One copy to a device in all."""
        count = len(rows.action)
        for slots, which in spans(self.head, count, self.capacity):
            if self._host is not None:
                self._pack(rows, which, self._host[slots])
            else:
                packed = np.empty((slots.stop - slots.start, self.rows.shape[1]), np.float32)
                self._pack(rows, which, packed)
                self.rows[slots].copy_(torch.from_numpy(packed))
        self.head = (self.head + count) % self.capacity
        self.size = min(self.size + count, self.capacity)

    def _pack(self, rows: Transitions, which: slice, out: np.ndarray) -> None:
        d = self.spec.obs_size
        out[:, :d] = rows.obs[which]
        out[:, d : 2 * d] = rows.next_obs[which]
        for column, name in enumerate(SCALARS, start=2 * d):
            out[:, column] = getattr(rows, name)[which]
        if self.spec.masked:
            out[:, 2 * d + len(SCALARS) :] = rows.next_mask[which]

    def sample(self, index: np.ndarray) -> Transitions:
        """The rows in slots `index` (B,) int64, each in 0 … len - 1, as tensors on the device, safe to keep."""
        chosen = self.rows.index_select(0, torch.from_numpy(index).to(self.device))  # (B, W)
        obs, next_obs, scalars, mask = chosen.split(self.widths, dim=1)
        action, reward, terminated, truncated, discount = scalars.unbind(1)
        return Transitions(
            obs,
            action.long(),
            reward,
            next_obs,
            terminated,
            truncated,
            discount,
            mask if self.spec.masked else None,
        )
