"""Episodes laid into columns."""

import pytest
import torch

from rlbench.episodes.lanes import lanes


@pytest.mark.parametrize("lengths", [[1], [5], [1, 1, 1], [3, 1, 4, 1, 5, 9, 2, 6], [7, 1, 7, 1], [2] * 20])
def test_every_step_has_a_place_and_episodes_lie_in_one_piece(lengths):
    bounds = torch.tensor([0, *lengths]).cumsum(0)
    laid = lanes(bounds)
    assert laid.steps == max(lengths) and len(set(laid.place.tolist())) == sum(lengths)
    assert laid.steps * laid.columns <= 2 * sum(lengths) + max(lengths)
    values = torch.arange(1, sum(lengths) + 1)
    table = laid.spread(values, -1)
    assert table.shape == (laid.steps, laid.columns) and torch.equal(laid.gather(table), values)
    assert (table == -1).sum() == laid.steps * laid.columns - sum(lengths)
    for a, b in zip(bounds.tolist(), bounds[1:].tolist(), strict=False):
        where = (table == a + 1).nonzero()[0].tolist()
        assert table[where[0] : where[0] + b - a, where[1]].tolist() == list(range(a + 1, b + 1))


def test_no_episodes():
    assert lanes(torch.tensor([0])).spread(torch.empty(0)).shape == (0, 0)
