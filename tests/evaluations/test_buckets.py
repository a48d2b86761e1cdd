"""Bucketed shapes: few of them, nothing lost, what fills up belongs to nobody."""

import pytest
import torch

from rlbench.actions import pack
from rlbench.evaluations.buckets import bucket, bucketed, fill_up, row_bucket


def test_totals_by_hand():
    given = [0, 1, 64, 65, 80, 81, 97, 113, 128, 129, 160, 1025, 2700]
    assert [bucket(n) for n in given] == [64, 64, 64, 80, 80, 96, 112, 128, 128, 160, 160, 1280, 3072]
    assert [bucket(n, 64, 2) for n in (65, 96, 97, 128, 129, 193)] == [96, 96, 128, 128, 192, 256]
    assert [row_bucket(n) for n in (1, 15, 16, 17, 19, 255, 256, 257)] == [16, 16, 16, 18, 20, 256, 256, 288]


@pytest.mark.parametrize(("least", "steps", "waste"), [(64, 4, 0.25), (16, 8, 0.125), (64, 2, 0.5)])
def test_buckets_hold_what_they_are_for_and_are_few(least, steps, waste):
    sizes = [bucket(n, least, steps) for n in range(1, 5000)]
    assert all(n <= size <= max(least, n * (1 + waste)) for n, size in enumerate(sizes, start=1))
    assert sizes == sorted(sizes) and len(set(sizes)) <= steps * 13 + 8
    assert all(bucket(size, least, steps) == size for size in set(sizes))  # filled-up shapes stay


def test_filled_up_actions_belong_to_a_row_beyond_the_last():
    sets = bucketed(pack([[5, 2**63], [7], [1, 2, 3]]))
    assert sets.ids[:6].tolist() == [5, -(2**63), 7, 1, 2, 3] and not sets.ids[6:].any() and len(sets.ids) == 64
    assert sets.states.tolist() == [0, 0, 1, 2, 2, 2] + [3] * 58
    assert sets.first.tolist() == [0, 2, 3] and sets.first.is_contiguous()


def test_filled_up_rows_have_no_actions():
    sets = bucketed(pack([[5], [6, 7]]), rows=4)
    assert sets.first.tolist() == [0, 1, 3, 3]
    assert sets.states.tolist() == [0, 1, 1] + [4] * 61


def test_a_total_that_is_a_bucket_is_not_filled_up():
    legal = pack([range(1, 33), range(1, 33)])
    sets = bucketed(legal)
    assert sets.ids is legal.ids and sets.states.tolist() == [0] * 32 + [1] * 32
    assert len(bucketed(pack([range(65)])).ids) == 80


def test_a_state_without_actions_keeps_its_place():
    """A finished game has none."""
    assert bucketed(pack([[], [4], []])).first.tolist() == [0, 0, 1]
    assert bucketed(pack([[], [4], []])).states.tolist() == [1] + [3] * 63


def test_rows_are_filled_up_with_a_value():
    assert fill_up(torch.ones(2, 3), 4).tolist() == [[1.0] * 3] * 2 + [[0.0] * 3] * 2
    assert fill_up(torch.zeros(1, 2, dtype=torch.bool), 2, True).tolist() == [[False, False], [True, True]]
    assert fill_up(torch.tensor([3]), 3).tolist() == [3, 0, 0]
    rows = torch.ones(2, 3)
    assert fill_up(rows, 2) is rows
