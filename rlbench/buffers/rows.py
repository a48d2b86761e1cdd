"""What one row of replay looks like."""

from __future__ import annotations

from typing import NamedTuple

import torch

from rlbench.batch import Layout
from rlbench.probe import Probe


class RowSpec(NamedTuple):
    """Sizes of a transition's fields."""

    obs_size: int  # D
    num_actions: int  # A
    masked: bool = False  # whether rows carry the legal actions of the next state
    layout: Layout | None = None  # of the numbers in an observation, where it is known
    num_envs: int = 1  # N: rows come in as N at a time, env after env

    @property
    def mask_size(self) -> int:
        return self.num_actions if self.masked else 0


SCALARS = ("action", "reward", "terminated", "truncated", "discount")


class ReplayError(ValueError):
    """Rows that do not fit the replay."""


def check_capacity(
    capacity: int, spec: RowSpec, device: str | torch.device = "cpu", row_bytes: int | None = None
) -> int:
    """The capacity, or a ReplayError where its rows could not fit into the memory of the device.

    `row_bytes` is what a row takes; left out, that of all its numbers as float32.
    """
    if capacity < 1:
        raise ReplayError(f"capacity must be at least 1, not {capacity}.")
    need = capacity * (row_bytes or 4 * (2 * spec.obs_size + len(SCALARS) + spec.mask_size))
    has = memory_bytes(torch.device(device))
    if has is not None and need > has:
        raise ReplayError(
            f"buffer_size={capacity:,} rows with observations of {spec.obs_size:,} numbers take {need / 1e9:,.1f} GB, and "
            f"{device} has {has / 1e9:,.1f} GB: accepted here are up to {has * capacity // need:,}."
        )
    return int(capacity)


def memory_bytes(device: torch.device) -> int | None:
    """All memory of a device; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    gigabytes = Probe().memory_gb()
    return None if gigabytes is None else int(gigabytes * 1e9)


def spans(head: int, rows: int, capacity: int) -> list[tuple[slice, slice]]:
    """Where `rows` new rows go in a ring whose next free slot is `head`: pairs of (slots, which of the new rows).

    One pair, or two where the ring wraps. Of more rows than the ring holds, the last ones stay, each in the slot in which
    inserting one by one would have left it.
    """
    skip = max(0, rows - capacity)
    head, rows = (head + skip) % capacity, rows - skip
    first = min(rows, capacity - head)
    pairs = [(slice(head, head + first), slice(skip, skip + first))]
    if first < rows:
        pairs.append((slice(0, rows - first), slice(skip + first, skip + rows)))
    return pairs
