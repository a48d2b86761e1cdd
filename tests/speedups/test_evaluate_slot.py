"""The slot of evaluators: all of them alike, its inputs, its check, and where a variant cannot be used."""

from types import SimpleNamespace

import pytest
import torch

from rlbench import PPOConfig
from rlbench.speedups.evaluate import SPEEDUP, make_inputs

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
USABLE = [name for name in SPEEDUP.variants if SPEEDUP.requires(name, None, None, CPU, None) is None]
CASES = [pytest.param(name, marks=[pytest.mark.slow] if name == "packed_compiled" else []) for name in USABLE]


@pytest.mark.parametrize("variant", CASES)
@pytest.mark.parametrize(("size", "longest"), [(1, None), (2, None), (33, None), (130, None), (20, 1400)])
def test_variants_agree(variant, size, longest):
    expected = SPEEDUP.exercise(SPEEDUP.variants["loop"], make_inputs(size, 1, "cpu", longest))
    SPEEDUP.check(expected, SPEEDUP.exercise(SPEEDUP.variants[variant], make_inputs(size, 1, "cpu", longest)))


def test_inputs_are_as_said():
    _, obs, legal, choice, weights = make_inputs(2000, 0, "cpu")
    assert obs.shape == (2000, 128) and weights.shape == (3, 2000)
    assert set(legal.counts.tolist()) == set(range(1, 21)) and bool((legal.ids < 0).any())
    assert bool((choice < legal.counts).all()) and bool((choice >= 0).all())
    assert make_inputs(5, 0, "cpu", 1400)[2].counts[2] == 1400


@pytest.mark.parametrize("part", range(8))
def test_a_wrong_number_is_noticed(part):
    expected = SPEEDUP.exercise(SPEEDUP.variants["packed"], make_inputs(64, 0, "cpu"))
    wrong = [tensor.clone() for tensor in expected]
    wrong[part][(0,) * wrong[part].ndim] += 1e-3
    with pytest.raises(AssertionError):
        SPEEDUP.check(expected, wrong)


def test_where_it_cannot_be_used():
    no_game, game = SimpleNamespace(game=None), SimpleNamespace(game=object())
    for variant in ("loop", "packed"):
        assert SPEEDUP.requires(variant, None, None, CUDA, game) is None
        assert SPEEDUP.requires(variant, None, None, CPU, no_game) == (
            "the environment has no sets of legal actions; leave it out"
        )
    assert "runs on the CPU" in SPEEDUP.requires("packed_native", None, None, CUDA, None)
    halves = SimpleNamespace(precision="bfloat16")
    assert "in float32, not in bfloat16" in SPEEDUP.requires("packed_native", halves, None, CPU, None)
    deep = PPOConfig(hidden=(8,) * 40)
    assert "accepted here: packed" in SPEEDUP.requires("packed_native", None, deep, CPU, None)
    assert "need CUDA" in SPEEDUP.requires("packed_triton", None, None, CPU, None)
