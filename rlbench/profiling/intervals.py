"""Intervals of time: how long their union is, and what of each is its own. Events of a trace nest, so that sums count twice."""

from __future__ import annotations

import numpy as np


def union(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Disjoint intervals (N, 2) in order that cover the same time."""
    order = np.argsort(starts, kind="stable")
    starts, ends = np.asarray(starts)[order], np.asarray(ends)[order]
    if not len(starts):
        return np.empty((0, 2))
    reached = np.maximum.accumulate(ends)
    fresh = np.concatenate([[True], starts[1:] > reached[:-1]])
    return np.stack([starts[fresh], np.maximum.reduceat(ends, np.flatnonzero(fresh))], axis=1)


def length(intervals: np.ndarray) -> float:
    """Summed length of disjoint intervals (N, 2)."""
    return float((intervals[:, 1] - intervals[:, 0]).sum())


def own_times(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """What of each interval (N,) no interval within it covers; intervals nest or are apart, as calls of one thread do."""
    order = np.lexsort((-np.asarray(ends), starts))  # an outer one before those within it
    own = np.asarray(ends, dtype=np.float64) - starts
    stack: list[int] = []
    for i in order:
        while stack and ends[stack[-1]] <= starts[i]:
            stack.pop()
        if stack:
            own[stack[-1]] -= min(ends[i], ends[stack[-1]]) - starts[i]
        stack.append(int(i))
    return own
