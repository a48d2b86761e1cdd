"""What one row of replay looks like."""

from __future__ import annotations

from typing import NamedTuple


class RowSpec(NamedTuple):
    """Sizes of a transition's fields."""

    obs_size: int  # D
    num_actions: int  # A
    masked: bool = False  # whether rows carry the legal actions of the next state

    @property
    def mask_size(self) -> int:
        return self.num_actions if self.masked else 0


SCALARS = ("action", "reward", "terminated", "truncated", "discount")


class ReplayError(ValueError):
    """Rows that do not fit the replay."""


def check_capacity(capacity: int) -> int:
    if capacity < 1:
        raise ReplayError(f"capacity must be at least 1, not {capacity}.")
    return int(capacity)


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
