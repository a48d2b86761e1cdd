"""Minibatches taken in four ways hold the rows that they should, each with its own set of actions."""

import numpy as np
import pytest
import torch

from rlbench.actions import ActionSets, pack, unpack
from rlbench.batch import Decisions
from rlbench.minibatches import Rows, by_count, copies, index_views, like_parts, slices, stack_samples

WAYS = {"stack_samples": stack_samples, "copies": copies, "index_views": index_views, "by_count": by_count}
every_way = pytest.mark.parametrize("take", WAYS.values(), ids=WAYS)
in_order = pytest.mark.parametrize("take", [stack_samples, copies, index_views])
LISTS = [[7], [2**63, 1, 2**64 - 1], [0], [5, 2**40], [9, 8, 7, 6, 5], [3], [2**63 + 1, 4]]


def decisions_of(lists=LISTS, legal="sets"):
    """Row i has obs (i, -i), choice i, log_prob i / 10, value i + 0.5, advantage -i, target 100 + i."""
    total = len(lists)
    row = torch.arange(total, dtype=torch.float32)
    sets = {"sets": lambda: pack(lists), "mask": lambda: torch.eye(total, 4, dtype=torch.bool), "none": lambda: None}
    obs = torch.stack((row, -row), 1)
    return Decisions(obs, sets[legal](), row.long(), row / 10, row + 0.5, -row, row + 100)


def rows_in(batch, lists=LISTS):
    """The numbers of a minibatch's rows, each looked at whole."""
    rows = batch.choice.tolist()
    floats = torch.tensor(rows, dtype=torch.float32)
    assert batch.obs.tolist() == [[float(i), -float(i)] for i in rows]
    assert torch.equal(batch.log_prob, floats / 10) and torch.equal(batch.value, floats + 0.5)
    assert torch.equal(batch.advantage, -floats) and torch.equal(batch.target, floats + 100)
    if isinstance(batch.legal, ActionSets):
        assert unpack(batch.legal) == [lists[i] for i in rows]
        assert batch.legal.ids.dtype == batch.legal.offsets.dtype == torch.int64
    return rows


@every_way
def test_rows_go_where_the_order_says_with_their_sets(take):
    order = np.array([4, 0, 6, 1, 5, 3, 2])
    batches = [rows_in(batch) for batch in take(decisions_of(), order, [3, 2, 2])]
    if take is by_count:  # counts 5, 1, 2 | 3, 1 | 2, 1
        assert batches == [[0, 6, 4], [5, 1], [2, 3]]
    else:
        assert batches == [[4, 0, 6], [1, 5], [3, 2]]


def test_sorting_by_count_is_stable():
    lists = [[1], [1, 2], [3], [4, 5], [6], [7, 8]]
    batches = [rows_in(batch, lists) for batch in by_count(decisions_of(lists), np.array([5, 4, 3, 2, 1, 0]), [4, 2])]
    assert batches == [[4, 2, 5, 3], [0, 1]]


@every_way
@pytest.mark.parametrize("total", [1, 2, 7])
def test_one_minibatch_of_all_and_one_of_each(take, total):
    order = np.arange(total)[::-1]  # a view, with a negative stride
    for sizes in ([total], [1] * total):
        found = [i for batch in take(decisions_of(LISTS[:total]), order, sizes) for i in rows_in(batch)]
        assert sorted(found) == list(range(total)) and len(found) == total


@in_order
@pytest.mark.parametrize("legal", ["mask", "none"])
def test_masks_and_no_sets_at_all(take, legal):
    given = decisions_of(legal=legal)
    batches = list(take(given, np.array([4, 0, 6, 1, 5, 3, 2]), [4, 3]))
    assert [rows_in(batch) for batch in batches] == [[4, 0, 6, 1], [5, 3, 2]]
    for batch in batches:
        assert batch.legal is None if legal == "none" else torch.equal(batch.legal, given.legal[batch.choice])


def test_sorting_by_count_needs_sets():
    with pytest.raises(ValueError, match="no packed sets of actions; accepted here: legal=ActionSets"):
        list(by_count(decisions_of(legal="mask"), np.arange(7), [7]))


@every_way
def test_epochs_over_the_same_rows_do_not_change_them(take):
    rows = Rows(decisions_of())
    before = [tensor.clone() for tensor in (rows.decisions.obs, *rows.decisions.legal, rows.decisions.target)]
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(7)
        for batch in take(rows, order, [4, 3]):
            rows_in(batch)
            batch.advantage.add_(1.0) if take is not stack_samples else None  # a minibatch is the updater's own
            batch.legal.offsets.add_(1)
    after = (rows.decisions.obs, *rows.decisions.legal, rows.decisions.target)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert rows.decisions.advantage.tolist() == [-float(i) for i in range(7)]


@every_way
def test_no_rows_no_minibatches(take):
    empty = Decisions(torch.zeros(0, 2), pack([]), torch.zeros(0, dtype=torch.int64), *[torch.zeros(0)] * 4)
    assert list(take(empty, np.arange(0), [])) == []


@every_way
@pytest.mark.parametrize(
    ("order", "sizes", "message"),
    [
        ([0, 1, 7], [3], "whole numbers from 0 to 6"),
        ([0, -1], [2], "whole numbers from 0 to 6"),
        ([0.0, 1.0], [2], r"order \(2,\) float64 is refused"),
        ([0, 1, 2], [2], r"sizes \[2\] sum to 2; accepted: 1 or more each, 3 together"),
        ([0, 1, 2], [3, 0], "1 or more each"),
    ],
)
def test_what_does_not_fit_is_refused(take, order, sizes, message):
    with pytest.raises(ValueError, match=message):
        list(take(decisions_of(), np.array(order), sizes))


def test_counts_of_the_host_are_taken_as_given():
    """On CUDA they spare a wait: made before the rollout went over."""
    rows = Rows(decisions_of(), np.array([1, 3, 1, 2, 5, 1, 2]))
    assert [rows_in(batch) for batch in index_views(rows, np.array([4, 1]), [1, 1])] == [[4], [1]]
    assert Rows(decisions_of()).counts.tolist() == [1, 3, 1, 2, 5, 1, 2]


def test_slices_are_the_rows_as_they_lie():
    given = decisions_of()
    first, second = slices(given, [2, 5])
    assert rows_in(first) == [0, 1] and rows_in(second) == [2, 3, 4, 5, 6]
    assert first.obs.data_ptr() == given.obs.data_ptr() and first.legal.ids.data_ptr() == given.legal.ids.data_ptr()


@pytest.mark.parametrize(
    ("total", "batch_size", "expected"),
    [
        (0, 4, []),
        (1, 4, [1]),
        (4, 4, [4]),
        (5, 4, [3, 2]),
        (10, 4, [4, 3, 3]),
        (1024, 256, [256] * 4),
        (7, 1, [1] * 7),
        (1000, 300, [250] * 4),
    ],
)
def test_like_parts(total, batch_size, expected):
    assert like_parts(total, batch_size) == expected


def test_like_parts_of_any_size_are_few_and_alike():
    for total in range(1, 60):
        for batch_size in range(1, 20):
            parts = like_parts(total, batch_size)
            assert sum(parts) == total and max(parts) <= batch_size and max(parts) - min(parts) <= 1
            assert len(parts) == (total + batch_size - 1) // batch_size


@pytest.mark.parametrize(("total", "batch_size"), [(-1, 4), (4, 0)])
def test_like_parts_of_nothing_sensible_are_refused(total, batch_size):
    with pytest.raises(ValueError, match="accepted are 0 or more, and 1 or more"):
        like_parts(total, batch_size)
