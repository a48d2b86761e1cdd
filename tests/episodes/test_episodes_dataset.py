"""Minibatches of recorded samples: every sample once an epoch, like ones together where that is asked for."""

import numpy as np
import pytest
import torch

from rlbench.actions import ActionSets, pack, unpack
from rlbench.batch import Decisions
from rlbench.episodes import ORDERS, Bucketed, GroupedByCount, Shuffled
from rlbench.minibatches import Rows, by_count, stack_samples
from rlbench.random import Purpose, random_bits


def decisions(counts: list[int]) -> Decisions:
    """Samples that are told apart by `target`."""
    rng = np.random.default_rng(0)
    rows = len(counts)
    legal = pack([rng.integers(0, 2**64, count, np.uint64) for count in counts])
    choice = torch.tensor([int(rng.integers(count)) for count in counts])
    parts = [torch.from_numpy(rng.normal(size=rows).astype(np.float32)) for _ in range(3)]
    return Decisions(torch.randn(rows, 2), legal, choice, *parts, torch.arange(rows, dtype=torch.float32))


COUNTS = [1, 3, 3, 64, 2, 1, 3, 5, 8, 4, 9, 3, 3, 1]
ALL = pytest.mark.parametrize("name", list(ORDERS))


@ALL
@pytest.mark.parametrize("counts", [COUNTS, [7], [2] * 9, list(range(1, 12))])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_every_sample_once_an_epoch_as_it_is(name, counts, batch_size):
    samples = decisions(counts)
    data = ORDERS[name](samples, batch_size, seed=3)
    batches = list(data.epoch(5))
    assert len(batches) == len(data) and all(1 <= len(batch.choice) <= batch_size for batch in batches)
    rows = torch.cat([batch.target for batch in batches]).long()
    assert rows.sort().values.tolist() == list(range(len(counts)))
    lists = unpack(samples.legal)
    for batch in batches:
        where = batch.target.long()
        assert unpack(batch.legal) == [lists[i] for i in where.tolist()]
        for field in ("obs", "choice", "log_prob", "value", "advantage"):
            assert torch.equal(getattr(batch, field), getattr(samples, field)[where])


def test_groups_have_one_count_and_buckets_one_power_of_two():
    for batch in GroupedByCount(decisions(COUNTS), 4).epoch(0):
        assert len(set(batch.legal.counts.tolist())) == 1
    found = {}
    for batch in Bucketed(decisions(list(range(1, 21))), 100).epoch(0):
        counts = sorted(batch.legal.counts.tolist())
        found[counts[0]] = counts[-1]
    assert found == {1: 1, 2: 2, 3: 4, 5: 8, 9: 16, 17: 20}


def test_a_group_is_cut_into_like_parts():
    """Nine samples of one count and two of another, four at most: 3 + 3 + 3 and 2."""
    _, sizes = GroupedByCount(decisions([5] * 9 + [2] * 2), 4).order(0)
    assert sorted(sizes) == [2, 3, 3, 3]
    _, sizes = Shuffled(decisions([5] * 9 + [2] * 2), 4).order(0)
    assert sizes == [4, 4, 3]


@ALL
def test_order_is_a_function_of_seed_and_epoch(name):
    data = ORDERS[name](decisions(COUNTS * 4), 3, seed=1)
    twin, other = ORDERS[name](decisions(COUNTS * 4), 3, seed=1), ORDERS[name](decisions(COUNTS * 4), 3, seed=2)
    order, sizes = data.order(7)
    assert order.tolist() == twin.order(7)[0].tolist() and sizes == twin.order(7)[1]
    assert order.tolist() != data.order(8)[0].tolist() and order.tolist() != other.order(7)[0].tolist()


def test_shuffled_is_the_order_of_the_hash():
    order, _ = Shuffled(decisions(COUNTS), 4, seed=9).order(2)
    keys = [random_bits(9, Purpose.MINIBATCH, 2, i) for i in range(len(COUNTS))]
    assert order.tolist() == sorted(range(len(COUNTS)), key=lambda i: keys[i])


def test_minibatches_of_groups_come_in_any_order():
    """Over epochs each group is first about as often as it has minibatches."""
    data = GroupedByCount(decisions([1] * 10 + [2] * 10), 5)
    first = [int(next(iter(data.epoch(e))).legal.counts[0]) for e in range(200)]
    assert 70 < first.count(1) < 130


def test_samples_of_a_group_meet_others_in_each_epoch():
    """Which 3 of 9 are together differs from epoch to epoch, and each pair meets."""
    data, met = GroupedByCount(decisions([4] * 9), 3), np.zeros((9, 9), int)
    for e in range(200):
        for batch in data.epoch(e):
            rows = batch.target.long().numpy()
            met[np.ix_(rows, rows)] += 1
    pairs = met[~np.eye(9, dtype=bool)]
    assert (pairs > 25).all() and (pairs < 80).all()  # 50 expected


def test_rows_are_taken_as_asked():
    samples = decisions(COUNTS)
    plain = Shuffled(samples, 4, seed=1)
    stacked, turned = Shuffled(samples, 4, 1, stack_samples), Shuffled(Rows(samples), 4, 1, by_count)
    for one, two, three in zip(plain.epoch(0), stacked.epoch(0), turned.epoch(0), strict=True):
        assert torch.equal(one.target, two.target) and torch.equal(one.legal.ids, two.legal.ids)
        assert sorted(one.target.tolist()) == sorted(three.target.tolist())
        assert three.legal.counts.tolist() == sorted(one.legal.counts.tolist())


def test_nothing_to_give():
    empty = decisions([])._replace(
        legal=ActionSets(torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    )
    assert all(list(kind(empty, 4).epoch(0)) == [] and len(kind(empty, 4)) == 0 for kind in ORDERS.values())
