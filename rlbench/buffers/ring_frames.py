"""Replay that stores each bar of a window once and gathers windows as they are sampled."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.buffers.rows import SCALARS, ReplayError, RowSpec, check_capacity, spans
from rlbench.buffers.windows import Windows, checked_layout


class RingFrames:
    """Observations of w bars of F features and o numbers of the account's own take F numbers a step here, not 2 w F.

    Each env's bars lie in a ring of frames of its own. A row keeps the number of its newest frame, which is the newest bar of
    `next_obs`: the w bars that end there are the window of `next_obs`, the w that end one earlier that of `obs`. An
    episode's first window is stored whole, its true last one as any other, so nothing is read from another episode or
    another age. Own numbers, flags and masks lie in packed rows.

    Frames that a row may still ask for are never overwritten: where episodes are so short that their first windows do not fit,
    the frames are moved to larger memory.
    """

    gives = "tensors"

    def __init__(self, spec: RowSpec, capacity: int, device: str | torch.device = "cpu") -> None:
        self.spec, self.device = spec, torch.device(device)
        self.layout = checked_layout(spec)
        self.window, features, own = self.layout
        self.widths = [own, own, len(SCALARS), spec.mask_size]
        row_bytes = 4 * (features + sum(self.widths)) + 8
        self.capacity, self.num_envs = check_capacity(capacity, spec, device, row_bytes), spec.num_envs
        self.size = self.head = self.total = 0  # total: rows ever added
        self.rest = torch.zeros((self.capacity, sum(self.widths)), device=self.device)
        self.newest = torch.zeros(self.capacity, dtype=torch.int64, device=self.device)  # frame * N + env of each row
        self.depth = -(-self.capacity // self.num_envs) + 2 * (self.window + 1)  # C: frames an env's ring holds
        # Frame f of env i lies in row (f % C) * N + i, that is (f * N + i) % (C * N).
        self.frames = torch.zeros((self.depth * self.num_envs, features), device=self.device)
        self.written = np.zeros(self.num_envs, np.int64)  # frames ever, of each env
        self.last = np.zeros((self.num_envs, self.window * features), np.float32)  # each env's newest window
        on_host = self.device.type == "cpu"
        same = self.newest.numpy() if on_host else None  # sync: host memory, a view
        self._newest = np.zeros(self.capacity, np.int64) if same is None else same
        self.room = -1  # frames that every env may surely still write before room is looked for again
        self._back = torch.arange(-self.window, 1, device=self.device) * self.num_envs  # (w + 1,)

    def __len__(self) -> int:
        return self.size

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
        if skip:
            rows = Transitions(*(None if field is None else field[skip:] for field in rows))
        windows = Windows(rows, self.layout, self.num_envs, self.last, bool(self.written[0]))
        self._advance(skip)
        new = np.where(windows.fresh, self.window + 1, 1)  # (S, N) frames
        newest = self.written - 1 + np.cumsum(new, axis=0)  # (S, N)
        self._make_room(newest, count - skip)
        self.written = newest[-1] + 1
        self.last = windows.next_obs[-1].copy()
        self._store_frames(windows, newest)
        self._store_rest(rows, newest)
        self._advance(count - skip)

    def _advance(self, count: int) -> None:
        self.head = (self.head + count) % self.capacity
        self.size = min(self.size + count, self.capacity)
        self.total += count

    def _make_room(self, newest: np.ndarray, count: int) -> None:
        """See to it that frames up to `newest` (S, N) fit beside all that the rows which stay may ask for."""
        self.room -= int((newest[-1] - self.written).max()) + 1
        if self.room >= 0:
            return
        env = np.arange(self.num_envs)
        first = max(0, self.total + count - self.capacity)  # number of the oldest row that stays
        row = first + (env - first) % self.num_envs  # each env's oldest
        stored = self._newest[row % self.capacity] // self.num_envs
        oldest = np.where(row < self.total, stored, newest[0])  # (N,) frames
        need = int((newest[-1] - oldest).max()) + self.window + 1
        if need > self.depth:
            self._grow(max(need, self.depth + self.depth // 4))
        self.room = self.depth - need

    def _grow(self, depth: int) -> None:
        """Move all frames to memory for `depth` an env."""
        frames = torch.zeros((depth * self.num_envs, self.frames.shape[1]), device=self.device)
        number = np.arange(min(self.depth, int(self.written.max())))[:, None]  # 0: each env's newest
        number = self.written - 1 - number  # (C, N)
        flat = (number * self.num_envs + np.arange(self.num_envs))[number >= 0]
        was, becomes = (torch.from_numpy(flat % (d * self.num_envs)).to(self.device) for d in (self.depth, depth))
        frames[becomes] = self.frames[was]
        self.frames, self.depth = frames, depth

    def _store_frames(self, windows: Windows, newest: np.ndarray) -> None:
        features = self.layout.features
        places = newest * self.num_envs + np.arange(self.num_envs)  # (S, N)
        self._write(self.frames, places.reshape(-1) % len(self.frames), windows.next_obs[:, :, -features:])
        if windows.fresh.any():
            back = np.arange(-self.window, 0) * self.num_envs  # (w,)
            where = places[windows.fresh][:, None] + back  # (M, w)
            self._write(self.frames, where.reshape(-1) % len(self.frames), windows.obs[windows.fresh])

    def _store_rest(self, rows: Transitions, newest: np.ndarray) -> None:
        own = self.layout.own
        parts = [rows.obs[:, -own:], rows.next_obs[:, -own:]] if own else []
        parts += [np.asarray(getattr(rows, name), np.float32)[:, None] for name in SCALARS]
        parts += [rows.next_mask] if self.spec.masked else []
        rest = np.concatenate(parts, axis=1, dtype=np.float32)  # (n, 2 o + 5 + A)
        places = (newest * self.num_envs + np.arange(self.num_envs)).reshape(-1)
        for slots, which in spans(self.head, len(rest), self.capacity):
            self._write(self.rest, slots, rest[which])
            self._write(self.newest, slots, places[which])
            self._newest[slots] = places[which]

    def _write(self, stored: Tensor, where: slice | np.ndarray, values: np.ndarray) -> None:
        values = values.reshape(-1, *stored.shape[1:])
        if self.device.type == "cpu":
            stored.numpy()[where] = values  # sync: host memory, a view
        else:
            at = where if isinstance(where, slice) else torch.from_numpy(where).to(self.device)
            stored[at] = torch.from_numpy(values).to(self.device)

    def sample(self, index: np.ndarray | Tensor) -> Transitions:
        """The rows in slots `index` (B,) int64, each in 0 … len - 1, as tensors on the device, safe to keep."""
        at = (index if isinstance(index, Tensor) else torch.from_numpy(index)).to(self.device)  # (B,)
        where = (self.newest.index_select(0, at)[:, None] + self._back) % len(self.frames)  # (B, w + 1)
        bars = self.frames.index_select(0, where.view(-1)).view(len(at), -1)  # (B, (w + 1) * F)
        rest = self.rest.index_select(0, at)  # (B, 2 o + 5 + A)
        own, next_own, scalars, mask = rest.split_with_sizes(self.widths, 1)
        action, reward, terminated, truncated, discount = scalars.unbind(1)
        obs = torch.cat([bars[:, : -self.layout.features], own], 1)
        next_obs = torch.cat([bars[:, self.layout.features :], next_own], 1)
        mask = mask if self.spec.masked else None
        return Transitions(obs, action.long(), reward, next_obs, terminated, truncated, discount, mask)
