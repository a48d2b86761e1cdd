"""Replay that stores each bar of a window once and gathers windows as they are sampled."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.buffers.ring_torch import RingTorch
from rlbench.buffers.rows import SCALARS, ReplayError, RowSpec, check_capacity, spans
from rlbench.buffers.windows import Windows, checked_layout


class RingFrames:
    """Observations of w bars of F features and o numbers of the account's own take F + 2 o numbers a step here, not 2 (w F + o).

    Each env's bars lie in a ring of frames of its own. A row keeps the number of its newest frame, which is the newest bar of
    `next_obs`: the w bars that end there are the window of `next_obs`, the w that end one earlier that of `obs`. An
    episode's first window is stored whole, its true last one as any other, so nothing is read from another episode or
    another age. All else of a row lies in a `RingTorch`, whose observations are the own numbers alone.

    Frames that a row may still ask for are never overwritten: where episodes are so short that their first windows do not fit,
    the frames are moved to larger memory.
    """

    gives = "tensors"

    def __init__(self, spec: RowSpec, capacity: int, device: str | torch.device = "cpu") -> None:
        self.spec, self.device = spec, torch.device(device)
        self.window, self.features, own = self.layout = checked_layout(spec)
        row_bytes = 4 * (self.features + 2 * own + len(SCALARS) + spec.mask_size) + 8
        self.capacity, self.num_envs = check_capacity(capacity, spec, device, row_bytes), spec.num_envs
        self.rest = RingTorch(RowSpec(own, spec.num_actions, spec.masked), capacity, device)
        self.total = 0  # rows ever added
        self.newest = torch.zeros(self.capacity, dtype=torch.int64, device=self.device)  # frame * N + env of each row
        same = self.newest.numpy() if self.device.type == "cpu" else None  # sync: host memory, a view
        self._newest = np.zeros(self.capacity, np.int64) if same is None else same
        self.depth = -(-self.capacity // self.num_envs) + 2 * (self.window + 1)  # C: frames an env's ring holds
        # Frame f of env i lies in row (f % C) * N + i, that is (f * N + i) % (C * N).
        self.frames = torch.zeros((self.depth * self.num_envs, self.features), device=self.device)
        self.room = -1  # frames that every env may surely still write before room is looked for again
        self.written = np.zeros(self.num_envs, np.int64)  # frames ever, of each env
        self.last = np.zeros((self.num_envs, self.window * self.features), np.float32)  # each env's newest window
        self._envs = np.arange(self.num_envs)
        self._back = np.arange(-self.window, 1) * self.num_envs  # (w + 1,)
        self._back_there = torch.from_numpy(self._back).to(self.device)

    def __len__(self) -> int:
        return len(self.rest)

    @property
    def head(self) -> int:
        """The slot that the next row takes."""
        return self.rest.head

    @property
    def nbytes(self) -> int:
        """Memory that rows and frames take."""
        return self.rest.nbytes + self.newest.nbytes + self.frames.nbytes

    def add(self, rows: Transitions) -> None:
        """Write n rows, given as host arrays, over the oldest ones: all N envs in order, once for each of n / N steps."""
        count = len(rows.action)
        steps, left = divmod(count, self.num_envs)
        if left:
            raise ReplayError(
                f"ring_frames: {count} rows of {self.num_envs} envs; accepted are all envs in order, once for each step."
            )
        skip = max(0, steps - -(-self.capacity // self.num_envs)) * self.num_envs  # would be overwritten at once
        kept = Transitions(*(None if field is None else field[skip:] for field in rows)) if skip else rows
        windows = Windows(kept, self.layout, self.num_envs, self.last, bool(self.total))
        newest = self._number(windows.fresh)  # (S, N) frames
        self.total += skip
        self._make_room(newest, count - skip)
        places = newest * self.num_envs + self._envs  # (S, N)
        self._store_frames(windows, places)
        self._store_places(places.reshape(-1), (self.head + skip) % self.capacity)
        self.written = newest[-1] + 1
        self.last = windows.next_obs[-1].copy()
        self.total += count - skip
        own = self.spec.obs_size - self.layout.own
        self.rest.add(rows._replace(obs=rows.obs[:, own:], next_obs=rows.next_obs[:, own:]))

    def _number(self, fresh: np.ndarray) -> np.ndarray:
        """The frame of the newest bar of each `next_obs`: one more than the env's last, or after a fresh window w + 1 more."""
        if not fresh.any():
            return self.written + np.arange(len(fresh))[:, None]
        return self.written - 1 + np.cumsum(np.where(fresh, self.window + 1, 1), axis=0)

    def _make_room(self, newest: np.ndarray, count: int) -> None:
        """See to it that frames up to `newest` (S, N) fit beside all that the rows which stay may ask for."""
        self.room -= int((newest[-1] - self.written).max()) + 1
        if self.room >= 0:
            return
        first = max(0, self.total + count - self.capacity)  # number of the oldest row that stays
        row = first + (self._envs - first) % self.num_envs  # each env's oldest
        stored = self._newest[row % self.capacity] // self.num_envs
        oldest = np.where(row < self.total, stored, newest[0])  # (N,) frames
        need = int((newest[-1] - oldest).max()) + self.window + 1
        if need > self.depth:
            self._grow(max(need, self.depth + self.depth // 4))
        self.room = self.depth - need

    def _grow(self, depth: int) -> None:
        """Move all frames to memory for `depth` an env."""
        frames = torch.zeros((depth * self.num_envs, self.features), device=self.device)
        number = np.arange(min(self.depth, int(self.written.max())))[:, None]  # 0: each env's newest
        number = self.written - 1 - number  # (C, N)
        flat = (number * self.num_envs + self._envs)[number >= 0]
        was, becomes = (torch.from_numpy(flat % (d * self.num_envs)).to(self.device) for d in (self.depth, depth))
        frames[becomes] = self.frames[was]
        self.frames, self.depth = frames, depth

    def _store_frames(self, windows: Windows, places: np.ndarray) -> None:
        self._write(self.frames, places.reshape(-1) % len(self.frames), windows.next_obs[:, :, -self.features :])
        if windows.fresh.any():
            where = places[windows.fresh][:, None] + self._back[:-1]  # (M, w)
            self._write(self.frames, where.reshape(-1) % len(self.frames), windows.obs[windows.fresh])

    def _store_places(self, places: np.ndarray, head: int) -> None:
        for slots, which in spans(head, len(places), self.capacity):
            self._newest[slots] = places[which]
            if self.device.type != "cpu":
                self._write(self.newest, slots, places[which])

    def _write(self, stored: Tensor, where: slice | np.ndarray, values: np.ndarray) -> None:
        values = values.reshape(-1, *stored.shape[1:])
        if self.device.type == "cpu":
            stored.numpy()[where] = values  # sync: host memory, a view
        else:
            at = where if isinstance(where, slice) else torch.from_numpy(where).to(self.device)
            stored[at] = torch.from_numpy(values).to(self.device)

    def sample(self, index: np.ndarray | Tensor) -> Transitions:
        """The rows in slots `index` (B,) int64, each in 0 … len - 1, as tensors on the device, safe to keep."""
        rows = self.rest.sample(index)
        bars = self._windows(index)  # (B, (w + 1) * F)
        obs = torch.cat([bars[:, : -self.features], rows.obs], 1)
        next_obs = torch.cat([bars[:, self.features :], rows.next_obs], 1)
        return rows._replace(obs=obs, next_obs=next_obs)

    def _windows(self, index: np.ndarray | Tensor) -> Tensor:
        """The w + 1 bars of each row's two windows: (B, (w + 1) * F)."""
        if self.device.type == "cpu":
            at = index.numpy() if isinstance(index, Tensor) else index  # sync: host memory, a view
            where = (self._newest.take(at)[:, None] + self._back) % len(self.frames)  # (B, w + 1)
            frames = self.frames.numpy()  # sync: host memory, a view
            return torch.from_numpy(frames.take(where, 0).reshape(len(at), -1))
        at = (index if isinstance(index, Tensor) else torch.from_numpy(index)).to(self.device)
        where = (self.newest.index_select(0, at)[:, None] + self._back_there) % len(self.frames)  # (B, w + 1)
        return self.frames.index_select(0, where.view(-1)).view(len(at), -1)
