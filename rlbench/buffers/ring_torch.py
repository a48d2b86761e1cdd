"""Replay as one preallocated tensor on the training device: a row is one transition, a batch is one gather."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.buffers.packed import columns, pack, pack_into, unpack
from rlbench.buffers.rows import RowSpec, check_capacity, spans


class RingTorch:
    """Rows are packed as `buffers/packed.py` says. One gather touches each sampled row once, in neighbouring cache lines.

    On the CPU the gather is NumPy's `take`, which for a small batch returns sooner than torch's `index_select`.
    """

    gives = "tensors"

    def __init__(self, spec: RowSpec, capacity: int, device: str | torch.device = "cpu") -> None:
        self.spec, self.device = spec, torch.device(device)
        self.capacity = check_capacity(capacity, spec, device)
        self.size = self.head = 0
        self.columns = columns(spec)
        # One row more than slots: code that must write somewhere leaves there what is thrown away.
        self._all = torch.zeros((self.capacity + 1, self.columns.width), dtype=torch.float32, device=self.device)
        self.rows = self._all[:-1]
        on_host = self.device.type == "cpu"
        self._host = self.rows.numpy() if on_host else None  # sync: a view of host memory, nothing is copied

    def with_spare_row(self) -> Tensor:
        """(capacity + 1, W): the rows themselves and one more, in which compiled code leaves what is thrown away."""
        return self._all

    def __len__(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        """Memory that the rows take."""
        return self.rows.nbytes

    def add(self, rows: Transitions) -> None:
        """Write n rows over the oldest ones: host arrays whose first axis is n, or tensors on the device.

        Tensors on the device are packed and stored there. Of host arrays one copy in all goes to a device.
        """
        if isinstance(rows.obs, Tensor):
            return self.add_packed(pack(rows, self.spec))
        count = len(rows.action)
        if count == 1 and self._host is not None:
            pack_into(self._host[self.head], rows, 0, self.columns)
            return self._advance(1)
        for slots, which in spans(self.head, count, self.capacity):
            if self._host is not None:
                pack_into(self._host[slots], rows, which, self.columns)
            else:
                packed = np.empty((slots.stop - slots.start, self.rows.shape[1]), np.float32)
                pack_into(packed, rows, which, self.columns)
                self.rows[slots].copy_(torch.from_numpy(packed))
        return self._advance(count)

    def add_packed(self, packed: Tensor) -> None:
        """Write rows (n, W) that are packed already over the oldest ones."""
        for slots, which in spans(self.head, len(packed), self.capacity):
            self.rows[slots].copy_(packed[which])
        self._advance(len(packed))

    def _advance(self, count: int) -> None:
        self.head = (self.head + count) % self.capacity
        self.size = min(self.size + count, self.capacity)

    def sample_packed(self, index: np.ndarray | Tensor) -> Tensor:
        """The rows (B, W) in slots `index` (B,) int64, each in 0 … len - 1, as they are stored: a copy, safe to keep.

        Code that reads columns itself (compiled, captured, native) spares the seven views that `sample` makes.
        """
        if self._host is not None:
            at = index.numpy() if isinstance(index, Tensor) else index  # sync: host memory, a view
            return torch.from_numpy(self._host.take(at, 0))
        at = index if isinstance(index, Tensor) else torch.from_numpy(index)
        return self.rows.index_select(0, at.to(self.device, non_blocking=True))

    def sample(self, index: np.ndarray | Tensor) -> Transitions:
        """The rows in slots `index` (B,) int64, each in 0 … len - 1, as tensors on the device, safe to keep."""
        return unpack(self.sample_packed(index), self.spec)
