"""The slot `minibatch`: every variant puts the same rows into each minibatch."""

from types import SimpleNamespace

import pytest
import torch

from rlbench.minibatches import Rows, index_views
from rlbench.speedups.minibatch import BATCH, SPEEDUP, VARIANTS, bind, make_inputs, random_decisions, tensors_of

CPU = torch.device("cpu")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("size", [1, 2, 33, 700])
@pytest.mark.parametrize("seed", [0, 1])
def test_variants_agree(variant, size, seed):
    inputs = make_inputs(size, seed, "cpu")
    SPEEDUP.check(bind(VARIANTS["stack_samples"], inputs)(), bind(VARIANTS[variant], inputs)())


def test_only_by_count_has_another_order_within_a_minibatch():
    inputs = make_inputs(700, 0, "cpu")
    found = {name: bind(variant, inputs)() for name, variant in VARIANTS.items()}
    same = {name: all(map(torch.equal, tensors, found["stack_samples"])) for name, tensors in found.items()}
    assert same == {"stack_samples": True, "copies": True, "index_views": True, "by_count": False}
    counts = found["by_count"][1].diff()
    assert len(counts) <= BATCH and torch.equal(counts, counts.sort().values)


@pytest.mark.parametrize("field", range(8))
def test_a_wrong_row_is_noticed(field):
    expected = bind(VARIANTS["index_views"], make_inputs(300, 0, "cpu"))()
    wrong = [tensor.clone() for tensor in expected]
    wrong[8 + field][1] += 1
    with pytest.raises(AssertionError):
        SPEEDUP.check(expected, wrong)


def test_rows_that_change_places_between_minibatches_are_noticed():
    decisions, order, sizes = make_inputs(300, 0, "cpu")
    swapped = order.copy()
    swapped[[0, -1]] = swapped[[-1, 0]]
    one, other = (
        [t for batch in index_views(decisions, o, sizes) for t in tensors_of(batch)] for o in (order, swapped)
    )
    with pytest.raises(AssertionError):
        SPEEDUP.check(one, other)


def test_sorting_by_count_is_refused_where_all_counts_are_equal():
    gymnasium, game = SimpleNamespace(game=None), SimpleNamespace(game=object())
    assert "accepted here: stack_samples, copies, index_views" in SPEEDUP.requires(
        "by_count", None, None, CPU, gymnasium
    )
    for variant in VARIANTS:
        assert (
            SPEEDUP.requires(variant, None, None, CPU, game) is SPEEDUP.requires(variant, None, None, CPU, None) is None
        )
    assert SPEEDUP.requires("copies", None, None, CPU, gymnasium) is None


def test_the_list_of_samples_is_made_once():
    rows = Rows(random_decisions(3, 0, "cpu"))
    assert rows.samples is rows.samples and len(rows.samples) == 3
    assert all(isinstance(action, int) and action >= 0 for action in rows.samples[0][1])
