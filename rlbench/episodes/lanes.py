"""Episodes of any length as a rectangle of steps and columns, which is what advantages are computed on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Lanes(NamedTuple):
    """T rows and N columns. Episodes lie one below another; an end in a column lets nothing through to what lies above it."""

    steps: int  # T, the length of the longest episode
    columns: int  # N
    place: Tensor  # (S,) int64: where each step lies, row * N + column

    def spread(self, values: Tensor, empty: float | bool = 0) -> Tensor:
        """Values (S,) in their places (T, N), and `empty` where no step is."""
        out = values.new_full((self.steps * self.columns,), empty)
        return out.index_copy(0, self.place, values).view(self.steps, self.columns)

    def gather(self, values: Tensor) -> Tensor:
        """Values (S,) from their places (T, N)."""
        return values.flatten().index_select(0, self.place)


def lanes(bounds: Tensor) -> Lanes:
    """Lay episodes with `bounds` (E + 1,) into columns, each as long as the longest; at most about half stays empty."""
    starts = bounds.cpu().numpy()  # sync: once for a buffer of episodes
    lengths = np.diff(starts)
    longest = int(lengths.max(initial=0))
    column, used, first = 0, 0, np.empty((len(lengths), 2), np.int64)
    for e, length in enumerate(lengths.tolist()):
        if used + length > longest:
            column, used = column + 1, 0
        first[e] = used, column
        used += length
    columns = column + 1 if len(lengths) else 0
    row = np.arange(starts[-1]) - np.repeat(starts[:-1] - first[:, 0], lengths)
    place = row * columns + np.repeat(first[:, 1], lengths)
    return Lanes(longest, columns, torch.from_numpy(place).to(bounds.device))
