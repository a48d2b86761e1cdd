"""The slot `old_log_probs`: recomputed in any way they are what was stored, so that the first ratio is 1."""

import math
from types import SimpleNamespace

import pytest
import torch

from rlbench import PPOConfig
from rlbench.actions import pack
from rlbench.batch import Decisions
from rlbench.models.action_scorer import ActionScorer
from rlbench.speedups import old_log_probs
from rlbench.speedups.old_log_probs import SPEEDUP, VARIANTS, bind, make_inputs

CPU = torch.device("cpu")
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def by_hand(model, obs, ids, choice):
    """log p of one choice in Python floats from the model's weights, bits taken from Python ints."""
    joint, _ = model.states(obs[None])
    scores = []
    for action in ids:
        bits = [(action >> b) & 1 for b in range(64)]
        part = [sum(w for w, bit in zip(row, bits, strict=True) if bit) for row in model.action.tolist()]
        hidden = [max(0.0, j + p) for j, p in zip(joint[0].tolist(), part, strict=True)]
        scores.append(sum(v * h for v, h in zip(model.score.tolist(), hidden, strict=True)))
    return scores[choice] - math.log(sum(math.exp(s) for s in scores))


def six_states():
    """The handed case: 1, 3, 3, 64, 2 and 1 legal actions."""
    lists = [[2**63], [1, 2, 2**64 - 1], [0, 5, 9], [1 << b for b in range(64)], [7, 2**40], [3]]
    obs = torch.randn(6, 128, generator=torch.Generator().manual_seed(3))
    choice = torch.tensor([0, 2, 1, 63, 0, 0])
    return lists, Decisions(obs, pack(lists), choice, *[torch.zeros(6)] * 4)


@every_variant
def test_the_first_ratio_is_one(variant):
    model, (lists, decisions) = ActionScorer(128, (32, 32), torch.Generator().manual_seed(0)), six_states()
    kept = [by_hand(model, decisions.obs[i], ids, int(decisions.choice[i])) for i, ids in enumerate(lists)]
    decisions = decisions._replace(log_prob=torch.tensor(kept))
    found = VARIANTS[variant](model, decisions)
    assert found.shape == (6,) and found.dtype == torch.float32 and not found.requires_grad
    assert ((found - decisions.log_prob).exp() - 1).abs().max() < 1e-5
    if variant != "stored":
        assert found[[0, 5]].tolist() == [0.0, 0.0]  # one legal action: exactly


@every_variant
@pytest.mark.parametrize("size", [1, 2, 33, 128])
def test_variants_agree(variant, size):
    inputs = make_inputs(size, 1, "cpu")
    SPEEDUP.check(bind(VARIANTS["recompute_loop"], inputs)(), bind(VARIANTS[variant], inputs)())


@pytest.mark.parametrize("variant", ["recompute_grouped", "recompute_packed"])
def test_many_states_are_asked_about_in_parts(variant, monkeypatch):
    model, decisions = make_inputs(50, 0, "cpu")
    whole = VARIANTS[variant](model, decisions)
    monkeypatch.setattr(old_log_probs, "ROWS", 7)
    torch.testing.assert_close(VARIANTS[variant](model, decisions), whole)


def test_a_wrong_number_is_noticed():
    expected = bind(VARIANTS["recompute_packed"], make_inputs(8, 0, "cpu"))()
    with pytest.raises(AssertionError):
        SPEEDUP.check(expected, expected + 1e-3)


def test_what_is_asked_for_elsewhere_decides():
    gymnasium, game = SimpleNamespace(game=None), SimpleNamespace(game=object())
    recomputed, behaviour = PPOConfig(old_log_probs="recomputed"), PPOConfig()
    for variant in VARIANTS:
        assert SPEEDUP.requires(variant, None, behaviour, CPU, game) is None
        assert SPEEDUP.requires(variant, None, None, CPU, None) is None
        if variant != "stored":
            assert SPEEDUP.requires(variant, None, recomputed, CPU, game) is None
            reason = SPEEDUP.requires(variant, None, behaviour, CPU, gymnasium)
            assert reason == "the environment has no sets of legal actions; leave it out"
    assert SPEEDUP.requires("stored", None, behaviour, CPU, gymnasium) is None
    assert "accepted here: recompute_loop" in SPEEDUP.requires("stored", None, recomputed, CPU, game)
    assert "old_log_probs='behaviour'" in SPEEDUP.requires("stored", None, recomputed, CPU, gymnasium)
