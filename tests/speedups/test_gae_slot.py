"""The slot `gae`: every variant gives what the loop gives; compilation is counted."""

import pytest
import torch

from rlbench.speedups.gae import SPEEDUP, VARIANTS, bind, make_inputs

CPU = torch.device("cpu")
QUICK = [name for name in VARIANTS if name != "compiled"]


@pytest.mark.parametrize("variant", QUICK)
@pytest.mark.parametrize("size", [1, 2, 33])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_variants_agree(variant, size, seed):
    inputs = make_inputs(size, seed, "cpu")
    SPEEDUP.check(bind(VARIANTS["loop"], inputs)(), bind(VARIANTS[variant], inputs)())


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 33])
def test_compiled_agrees(size):
    if reason := SPEEDUP.requires("compiled", None, None, CPU, None):
        pytest.skip(reason)
    for seed in (0, 1):  # turn is 1, then -1
        inputs = make_inputs(size, seed, "cpu")
        SPEEDUP.check(bind(VARIANTS["loop"], inputs)(), bind(VARIANTS["compiled"], inputs)())


def test_inputs_have_ends_of_both_kinds_and_one_on_the_last_row():
    *_, terminated, truncated, _, _, turn = make_inputs(4, 1, "cpu")
    assert terminated.any() and truncated.any() and (terminated | truncated)[-1, 0] and turn == -1.0
    assert not (terminated & truncated).any()


def test_without_a_compiler_the_reason_says_what_is_accepted(monkeypatch):
    monkeypatch.setattr("rlbench.speedups.gae.why_not", lambda kind: f"nothing compiles on {kind}")
    reason = SPEEDUP.requires("compiled", None, None, CPU, None)
    assert reason == "nothing compiles on cpu; accepted here: loop, rows, scan"
    assert all(SPEEDUP.requires(name, None, None, CPU, None) is None for name in QUICK)


def test_a_wrong_outcome_is_noticed():
    expected = bind(VARIANTS["loop"], make_inputs(3, 0, "cpu"))()
    with pytest.raises(AssertionError):
        SPEEDUP.check(expected, expected + 1e-3)
