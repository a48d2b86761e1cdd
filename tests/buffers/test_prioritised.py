"""Prioritised replay: probabilities, weights, new rows, and zeros of every kind (handed case 7)."""

import math

import numpy as np
import pytest
import torch

from rlbench.batch import Transitions
from rlbench.buffers import (
    DequeReplay,
    Prioritised,
    ReplayError,
    RingNumpy,
    RingTorch,
    RowSpec,
    SumTreeLoop,
    SumTreeVectorised,
    to_uniform53,
)
from rlbench.random import Purpose, Stream

TREES = [SumTreeLoop, SumTreeVectorised]


def numbered(first: int, count: int) -> Transitions:
    ids = np.arange(first, first + count, dtype=np.float32)
    flags = np.zeros(count, bool)
    return Transitions(ids[:, None], ids.astype(np.int64), ids, ids[:, None] + 1, flags, flags, ids)


def prioritised(make_tree, capacity, rows=0, alpha=1.0, eps=1e-6, make=RingNumpy) -> Prioritised:
    replay = Prioritised(make(RowSpec(1, 9), capacity), make_tree(capacity), alpha, eps)
    if rows:
        replay.add(numbered(0, rows))
    return replay


def many(replay, beta, batches=2000, batch=8):
    """Draws of many batches, and the weights of each."""
    stream = Stream(7, Purpose.REPLAY, 2 * batch)
    drawn = [replay.sample(to_uniform53(stream.bits(step)), beta) for step in range(batches)]
    return np.concatenate([index for index, _ in drawn]), np.stack([weight for _, weight in drawn])


@pytest.mark.parametrize("make_tree", TREES)
@pytest.mark.parametrize("beta", [0.4, 1.0])
@pytest.mark.parametrize("eps", [1e-6, 0.0])
def test_a_zero_error_among_others(make_tree, beta, eps):
    """Capacity 8, three rows with errors 0, 1, 3: P = 0, 1/4, 3/4 but for the floor; weights of the others stay near 1."""
    replay = prioritised(make_tree, 8, 3, eps=eps)
    replay.update(np.arange(3), np.array([0.0, 1.0, -3.0]))
    index, weight = many(replay, beta)
    assert set(index.tolist()) == {1, 2}  # the floor's share is a fourth of a millionth
    assert np.isfinite(weight).all() and (weight.max(axis=1) == 1).all()
    assert np.mean(index == 2) == pytest.approx(3 / 4, abs=0.01)
    both = weight.min(axis=1) < 1  # batches with both rows: the likelier one's weight is (P₁ / P₂)^beta
    assert weight[both].min(axis=1) == pytest.approx((1 / 3) ** beta, rel=1e-5)


@pytest.mark.parametrize("make_tree", TREES)
@pytest.mark.parametrize("eps", [1e-6, 0.0])
def test_when_all_errors_are_zero_every_row_is_as_likely(make_tree, eps):
    replay = prioritised(make_tree, 8, 3, eps=eps)
    replay.update(np.arange(3), np.array([0.0, 1.0, 3.0]))
    replay.update(np.arange(3), np.zeros(3))
    assert (replay.tree.total == 0.0) == (eps == 0.0)
    index, weight = many(replay, 0.4, batches=1000, batch=9)
    assert np.bincount(index, minlength=8).tolist()[3:] == [0] * 5
    assert np.bincount(index) / len(index) == pytest.approx(1 / 3, abs=0.002)  # three of each nine, by the strata
    assert (weight == 1).all()


def test_a_row_at_the_floor_shrinks_the_others_in_its_own_batch_alone():
    replay = prioritised(SumTreeVectorised, 8, 3)
    replay.update(np.arange(3), np.array([0.0, 1.0, 3.0]))
    _, usual = replay.sample(np.array([0.5, 0.5]), 0.4)
    assert usual.tolist() == [1.0, pytest.approx(3**-0.4)]
    index, rare = replay.sample(np.array([0.0, 0.5]), 0.4)  # the floor has the first millionth of the sum
    assert index.tolist() == [0, 2] and rare[0] == 1 and rare[1] == pytest.approx((1e-6 / 3) ** 0.4, rel=1e-4)


@pytest.mark.parametrize("make_tree", TREES)
def test_weights_are_those_of_the_formula(make_tree):
    """w = (N · P)^-beta over the largest of the batch, with alpha, computed from the shares directly."""
    errors, alpha, beta, eps = [0.5, 2.0, 0.1, 7.0], 0.6, 0.7, 0.01
    replay = prioritised(make_tree, 6, 4, alpha, eps)
    replay.update(np.arange(4), torch.tensor(errors))
    p = [math.pow(abs(e) + eps, alpha) for e in np.array(errors, np.float32).tolist()]
    index, weight = replay.sample(np.linspace(0, 0.99, 16), beta)
    raw = [math.pow(4 * p[i] / sum(p), -beta) for i in index.tolist()]
    assert weight == pytest.approx([w / max(raw) for w in raw], rel=1e-6)
    assert weight.dtype == np.float32 and index.dtype == np.int64


@pytest.mark.parametrize("make", [DequeReplay, RingNumpy, RingTorch])
@pytest.mark.parametrize("make_tree", TREES)
def test_new_rows_get_the_largest_priority_so_far_in_their_own_slots(make_tree, make):
    replay = prioritised(make_tree, 5, 4, make=make)
    assert replay.tree.get(np.arange(5)).tolist() == [1, 1, 1, 1, 0]
    replay.update(np.array([1]), np.array([-6.0]))
    replay.update(np.array([1, 2]), np.array([0.5, 0.25]))
    replay.add(numbered(4, 2))  # slots 4 and 0
    expected = [6 + 1e-6, 0.5 + 1e-6, 0.25 + 1e-6, 1, 6 + 1e-6]
    assert replay.tree.get(np.arange(5)) == pytest.approx(expected, rel=1e-12)
    replay.add(numbered(6, 12))  # more than the ring holds
    assert replay.tree.get(np.arange(5)) == pytest.approx([6 + 1e-6] * 5, rel=1e-12)
    assert len(replay) == 5


def test_strata_draw_each_equal_row_once():
    replay = prioritised(SumTreeVectorised, 8, 8)
    assert replay.sample(np.full(8, 1 - 2.0**-53), 1.0)[0][-1] == 7  # the last share rounds up to the whole sum
    for u in (0.0, 0.3, 1 - 2.0**-40):
        assert replay.sample(np.full(8, u), 1.0)[0].tolist() == list(range(8))


def test_alpha_zero_is_uniform():
    replay = prioritised(SumTreeLoop, 4, 4, alpha=0.0, eps=0.0)
    replay.update(np.arange(4), np.array([0.0, 1.0, 5.0, 0.0]))
    assert replay.tree.get(np.arange(4)).tolist() == [1.0] * 4


def test_nothing_to_sample_is_said():
    with pytest.raises(ReplayError, match="nothing to sample"):
        prioritised(SumTreeLoop, 4).sample(np.array([0.5]), 1.0)


def test_rows_without_priorities_are_refused():
    ring = RingNumpy(RowSpec(1, 9), 4)
    ring.add(numbered(0, 2))
    with pytest.raises(ReplayError, match="2 rows without priorities"):
        Prioritised(ring, SumTreeLoop(4), 1.0, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_error_that_is_no_number_is_refused_and_leaves_the_tree(bad):
    replay = prioritised(SumTreeVectorised, 4, 4)
    with pytest.raises(ReplayError, match=r"td_error\[1\] is (nan|inf)"):
        replay.update(np.arange(3), np.array([1.0, bad, 2.0]))
    assert replay.tree.get(np.arange(4)).tolist() == [1.0] * 4 and replay.largest == 1.0


def test_uniforms_have_53_bits_and_stay_below_one():
    ones, zero = np.full(2, 2**32 - 1, np.int64), np.zeros(2, np.int64)
    assert to_uniform53(ones).tolist() == [1 - 2.0**-53]
    assert to_uniform53(zero).tolist() == [0.0]
    assert to_uniform53(np.array([32, 0], np.int64)).tolist() == [2.0**-27]  # the lowest bit kept of the first word
    assert to_uniform53(np.array([0, 64], np.int64)).tolist() == [2.0**-53]
    assert to_uniform53(np.array([1 << 31, 0, 0, 1 << 31], np.int64)).tolist() == [0.5, 2.0**-28]
