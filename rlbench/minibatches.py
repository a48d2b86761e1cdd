"""How the rows of a minibatch are taken from a rollout. What goes into a minibatch is given; in what form is the choice.

`order` (M,) says in which order the rows come, `sizes` how many make each minibatch. Sets of legal actions are packed, so that a
minibatch's ids lie scattered: where each comes from is worked out once an epoch, for all minibatches. How many ids a
minibatch has is a number that the host needs; it comes from counts that were brought to the host once a rollout, so that on CUDA
nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import ActionSets, pack, unpack
from rlbench.batch import Decisions


class Rows:
    """The M decisions of a rollout, with what the host knows of them; made once a rollout.

    Args:
        decisions: on one device.
        counts: (M,) int64, the number of actions of each state; left out, it is brought from the device.
    """

    def __init__(self, decisions: Decisions, counts: np.ndarray | None = None) -> None:
        self.decisions = decisions
        self._counts = counts

    def __len__(self) -> int:
        return len(self.decisions.obs)

    @property
    def packed(self) -> bool:
        return isinstance(self.decisions.legal, ActionSets)

    @cached_property
    def counts(self) -> np.ndarray:
        """(M,) int64 on the host: how many legal actions each state has.

        Raises:
            ValueError: where actions are not given as packed sets.
        """
        if self._counts is not None:
            return self._counts
        if not isinstance(self.decisions.legal, ActionSets):
            raise ValueError("these decisions have no packed sets of actions; accepted here: legal=ActionSets.")
        return np.diff(self.decisions.legal.offsets.cpu().numpy())  # sync: once a rollout

    @cached_property
    def samples(self) -> list[tuple]:
        """A tuple of one row's fields for each sample: tensors, and legal ids as a list of Python ints."""
        fields: list[Iterable[Any]] = []
        for field in self.decisions:
            if isinstance(field, ActionSets):
                fields.append(unpack(field))
            else:
                fields.append([None] * len(self) if field is None else field.unbind(0))
        return list(zip(*fields, strict=True))


def rows_of(decisions: Decisions | Rows) -> Rows:
    return decisions if isinstance(decisions, Rows) else Rows(decisions)


def like_parts(total: int, batch_size: int) -> list[int]:
    """`total` rows in as few parts as `batch_size` allows, whose sizes differ by one at most, the larger first."""
    if total < 0 or batch_size < 1:
        raise ValueError(f"{total} rows in minibatches of at most {batch_size}: accepted are 0 or more, and 1 or more.")
    parts = -(-total // batch_size)
    return [total // parts + (k < total % parts) for k in range(parts)]


def stack_samples(decisions: Decisions | Rows, order: np.ndarray, sizes: Sequence[int]) -> Iterator[Decisions]:
    """Minibatches stacked from samples, one after another; ids from Python lists."""
    rows, order, bounds = _checked(decisions, order, sizes)

    def joined(field: tuple) -> Any:
        if isinstance(field[0], Tensor):
            return torch.stack(field)
        return None if field[0] is None else pack(field, rows.decisions.obs.device)

    for a, b in pairwise(bounds):
        chosen = [rows.samples[i] for i in order[a:b].tolist()]  # sync: none, this is NumPy's
        yield Decisions(*(joined(field) for field in zip(*chosen, strict=True)))


def copies(decisions: Decisions | Rows, order: np.ndarray, sizes: Sequence[int]) -> Iterator[Decisions]:
    """The whole rollout copied in the new order once an epoch; minibatches are slices of the copy."""
    rows, order, _ = _checked(decisions, order, sizes)
    whole = next(index_views(rows, order, [len(order)])) if len(order) else rows.decisions
    yield from slices(Rows(whole, rows.counts[order] if rows.packed else None), sizes)


def index_views(decisions: Decisions | Rows, order: np.ndarray, sizes: Sequence[int]) -> Iterator[Decisions]:
    """Each minibatch gathered by index when its turn comes."""
    rows, order, bounds = _checked(decisions, order, sizes)
    index = torch.from_numpy(order).to(rows.decisions.obs.device)
    legal = rows.decisions.legal
    places, offsets, ends = _places(rows, order, index) if rows.packed else (None, None, [])
    for a, b in pairwise(bounds):
        part = index[a:b]
        batch = _each(rows.decisions, lambda field, part=part: field.index_select(0, part))
        if rows.packed:
            ids = legal.ids.index_select(0, places[ends[a] : ends[b]])
            batch = batch._replace(legal=ActionSets(ids, offsets[a : b + 1] - offsets[a]))
        yield batch


def by_count(decisions: Decisions | Rows, order: np.ndarray, sizes: Sequence[int]) -> Iterator[Decisions]:
    """As `index_views`, the rows of each minibatch sorted by their number of actions; of equals the first stays first.

    Raises:
        ValueError: where actions are not given as packed sets.
    """
    rows, order, _ = _checked(decisions, order, sizes)
    number = np.repeat(np.arange(len(sizes)), sizes)  # of the minibatch that a row goes to
    return index_views(rows, order[np.lexsort((rows.counts[order], number))], sizes)


def slices(decisions: Decisions | Rows, sizes: Sequence[int]) -> Iterator[Decisions]:
    """Neighbouring rows as they lie, without a copy but of offsets."""
    rows = rows_of(decisions)
    legal = rows.decisions.legal
    ends = _ends(rows.counts) if rows.packed else []
    for a, b in pairwise(_ends(sizes)):
        batch = _each(rows.decisions, lambda field, a=a, b=b: field[a:b])
        if rows.packed:
            ids = legal.ids[ends[a] : ends[b]]
            batch = batch._replace(legal=ActionSets(ids, legal.offsets[a : b + 1] - legal.offsets[a]))
        yield batch


def _each(decisions: Decisions, function: Callable[[Tensor], Tensor]) -> Decisions:
    """The function's outcome for every field that is a tensor, and None for others."""
    return Decisions(*(function(field) if isinstance(field, Tensor) else None for field in decisions))


def _ends(counts: Sequence[int] | np.ndarray) -> list[int]:
    """Where each of neighbouring parts begins, and where the last ends."""
    return [0, *np.cumsum(counts, dtype=np.int64).tolist()]  # sync: none, this is NumPy's


def _places(rows: Rows, order: np.ndarray, index: Tensor) -> tuple[Tensor, Tensor, list[int]]:
    """Where the ids of an epoch come from (A,), where each row's begin (M + 1,), and the latter on the host."""
    sets = rows.decisions.legal
    ends = _ends(rows.counts[order])
    counts = sets.counts.index_select(0, index)
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    shift = sets.offsets.index_select(0, index) - offsets[:-1]
    places = torch.repeat_interleave(shift, counts, output_size=ends[-1])
    return places.add_(torch.arange(ends[-1], device=index.device)), offsets, ends


def _checked(
    decisions: Decisions | Rows, order: np.ndarray, sizes: Sequence[int]
) -> tuple[Rows, np.ndarray, list[int]]:
    """Rows, order as int64 of its own, and where minibatches begin and end.

    Raises:
        ValueError: where sizes do not make up the order, or the order is not one of rows.
    """
    rows, order = rows_of(decisions), np.asarray(order)
    whole = order.ndim == 1 and order.dtype.kind in "iu"
    if not whole or (len(order) and not 0 <= order.min() <= order.max() < len(rows)):
        raise ValueError(
            f"order {order.shape} {order.dtype} is refused; accepted: (M,) whole numbers from 0 to {len(rows) - 1}."
        )
    if any(size < 1 for size in sizes) or sum(sizes) != len(order):
        raise ValueError(
            f"sizes {list(sizes)[:8]} sum to {sum(sizes)}; accepted: 1 or more each, {len(order)} together."
        )
    return rows, order.astype(np.int64), _ends(sizes)
