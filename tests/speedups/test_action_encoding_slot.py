"""The slot of encodings: its inputs, its check, and where it has nothing to say."""

from types import SimpleNamespace

import pytest
import torch

from rlbench.speedups.action_encoding import SPEEDUP

CPU = torch.device("cpu")


@pytest.mark.parametrize("variant", SPEEDUP.variants)
@pytest.mark.parametrize("size", [1, 2, 33, 1024])
def test_variants_agree(variant, size):
    expected = SPEEDUP.exercise(SPEEDUP.variants["loop"], SPEEDUP.make_inputs(size, 1, "cpu"))
    SPEEDUP.check(expected, SPEEDUP.exercise(SPEEDUP.variants[variant], SPEEDUP.make_inputs(size, 1, "cpu")))


def test_ids_use_all_bits():
    ids = SPEEDUP.make_inputs(1024, 0, "cpu")[0]
    assert 400 < int((ids < 0).sum()) < 624 and len(ids.unique()) == 1024


@pytest.mark.parametrize("part", [0, 1])
def test_a_wrong_number_is_noticed(part):
    expected = SPEEDUP.exercise(SPEEDUP.variants["loop"], SPEEDUP.make_inputs(8, 0, "cpu"))
    wrong = [tensor.clone() for tensor in expected]
    wrong[part][1, 1] += 1e-3
    with pytest.raises(AssertionError):
        SPEEDUP.check(expected, wrong)


def test_it_is_refused_where_it_would_be_ignored():
    for variant in SPEEDUP.variants:
        assert SPEEDUP.requires(variant, None, None, CPU, None) is None
        packed, native = (SimpleNamespace(evaluate=name) for name in ("packed", "packed_native"))
        assert SPEEDUP.requires(variant, packed, None, CPU, SimpleNamespace(game=object())) is None
        assert "an encoding of its own" in SPEEDUP.requires(variant, native, None, CPU, None)
        assert "no sets of legal actions" in SPEEDUP.requires(variant, None, None, CPU, SimpleNamespace(game=None))
