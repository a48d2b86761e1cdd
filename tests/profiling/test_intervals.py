import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.profiling.intervals import length, own_times, union

intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=12)


@given(intervals)
def test_a_union_covers_what_a_timeline_of_cells_does(pairs):
    starts, ends = np.array([a for a, _ in pairs], float), np.array([a + d for a, d in pairs], float)
    covered = {cell for a, d in pairs for cell in range(a, a + d)}
    found = union(starts, ends)
    assert length(found) == len(covered)
    assert all(found[i, 1] < found[i + 1, 0] for i in range(len(found) - 1))


def test_own_times_of_calls_by_hand():
    # 0..10 holds 1..4, which holds 2..3, and 5..9; 12..13 stands alone
    starts, ends = np.array([0.0, 1, 2, 5, 12]), np.array([10.0, 4, 3, 9, 13])
    assert own_times(starts, ends) == pytest.approx([3, 2, 1, 4, 1])
    order = [3, 0, 4, 2, 1]
    assert own_times(starts[order], ends[order]) == pytest.approx([4, 3, 1, 1, 2])


def test_of_nothing():
    assert length(union(np.array([]), np.array([]))) == 0
    assert len(own_times(np.array([]), np.array([]))) == 0
