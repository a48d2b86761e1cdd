"""Both sum trees hold the same bits and find the same slots, which are those of cumulative sums in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.buffers import SumTreeLoop, SumTreeVectorised

TREES = [SumTreeLoop, SumTreeVectorised]


def slots(*numbers):
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("make", TREES)
def test_four_priorities_by_hand(make):
    """Sums 1, 1 + 0 = 1, 1 + 3 = 4, 4 + 2 = 6: slot 0 has [0, 1), slot 1 nothing, slot 2 [1, 4), slot 3 [4, 6)."""
    tree = make(4)
    tree.set(slots(0, 1, 2, 3), np.array([1.0, 0.0, 3.0, 2.0]))
    assert tree.total == 6.0
    assert tree.nodes()[1:].tolist() == [6.0, 1.0, 5.0, 1.0, 0.0, 3.0, 2.0]
    assert tree.find(np.array([0.0, 0.999, 1.0, 3.999, 4.0, 5.999])).tolist() == [0, 0, 2, 2, 3, 3]
    assert tree.get(slots(2, 0)).tolist() == [3.0, 1.0]


@pytest.mark.parametrize("make", TREES)
def test_of_a_slot_named_twice_the_last_priority_stays(make):
    tree = make(5)
    tree.set(slots(3, 4, 3, 3), np.array([1.0, 2.0, 9.0, 0.5]))
    assert tree.get(slots(3, 4)).tolist() == [0.5, 2.0] and tree.total == 2.5


@pytest.mark.parametrize("make", TREES)
def test_a_single_slot(make):
    tree = make(1)
    assert tree.total == 0.0
    tree.set(slots(0), np.array([0.25]))
    assert tree.total == 0.25 and tree.find(np.array([0.0, 0.2])).tolist() == [0, 0]


@pytest.mark.parametrize("make", TREES)
@pytest.mark.parametrize("filled", [1, 3, 5, 600])
def test_empty_leaves_are_never_found_even_beyond_the_sum(make, filled):
    """Values at, and by rounding above, the total fall in the last slot that has a priority."""
    tree = make(1000)
    priority = np.full(filled, 0.1)
    priority[-1] = 1e-300  # lost in the rounding of every sum above it
    tree.set(np.arange(filled), priority)
    found = tree.find(np.array([tree.total, np.nextafter(tree.total, 9.0), np.nextafter(tree.total, 0.0)]))
    assert (found < filled).all() and (tree.get(found) > 0).all()


priorities = st.floats(0, 1e6, allow_subnormal=False) | st.just(0.0) | st.integers(0, 3).map(float)


@given(st.integers(1, 40), st.data())
def test_both_trees_hold_the_same_bits_and_find_the_same_slots(capacity, data):
    loop, vectorised = SumTreeLoop(capacity), SumTreeVectorised(capacity)
    for _ in range(data.draw(st.integers(1, 3))):
        size = data.draw(st.integers(1, 12))
        index = slots(*data.draw(st.lists(st.integers(0, capacity - 1), min_size=size, max_size=size)))
        priority = np.array(data.draw(st.lists(priorities, min_size=size, max_size=size)))
        loop.set(index, priority)
        vectorised.set(index, priority)
        assert loop.nodes().tobytes() == vectorised.nodes().tobytes()
        if loop.total > 0:
            share = np.array(data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=9)))
            found = vectorised.find(share * vectorised.total)
            assert loop.find(share * loop.total).tolist() == found.tolist()
            assert (vectorised.get(found) > 0).all()


@pytest.mark.parametrize("capacity", [511, 1024, 5000])
def test_large_trees_agree_and_match_exact_cumulative_sums(capacity):
    rng = np.random.default_rng(capacity)
    loop, vectorised = SumTreeLoop(capacity), SumTreeVectorised(capacity)
    for _ in range(3):
        index = rng.integers(0, capacity, 700)
        priority = rng.integers(0, 9, 700).astype(float)  # whole numbers: every sum is exact
        loop.set(index, priority)
        vectorised.set(index, priority)
    assert loop.nodes().tobytes() == vectorised.nodes().tobytes()
    leaves = [int(p) for p in vectorised.get(np.arange(capacity))]
    assert vectorised.total == sum(leaves)
    value = rng.random(200) * vectorised.total
    expected, below = [], [0]
    for p in leaves:
        below.append(below[-1] + p)
    for v in value.tolist():
        expected.append(next(i for i, p in enumerate(leaves) if Fraction(v) < below[i] + p))
    assert vectorised.find(value).tolist() == expected == loop.find(value).tolist()
