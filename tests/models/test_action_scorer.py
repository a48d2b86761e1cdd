"""The scorer of pairs of state and action: against its formula written out in float64, its names, its weights."""

import math

import torch
from torch import nn

from rlbench.models.action_scorer import ActionScorer, bits_of

NAMES = ["action", "score", "state.0.weight", "state.0.bias", "state.2.weight", "state.2.bias"]


def scorer(**more):
    return ActionScorer(5, (7, 6), torch.Generator().manual_seed(0), **more)


def test_parameters_keep_their_names_and_shapes():
    shapes = {name: tuple(parameter.shape) for name, parameter in scorer().named_parameters()}
    assert list(shapes)[:6] == NAMES
    assert shapes["action"] == (6, 64) and shapes["score"] == (6,) and shapes["state.2.weight"] == (6, 7)
    assert shapes["join.weight"] == (6, 6) and shapes["value.weight"] == (1, 6) and shapes["join.bias"] == (6,)


def test_scores_are_those_of_the_formula():
    model = scorer()
    p = {name: parameter.detach().double() for name, parameter in model.named_parameters()}
    obs, ids = torch.randn(1, 5), torch.tensor([0, 3, -1, -(2**63)])
    h = obs.double()
    for layer in ("state.0", "state.2"):
        h = (h @ p[f"{layer}.weight"].t() + p[f"{layer}.bias"]).clamp(min=0)
    side_by_side = torch.cat((h.expand(4, -1), bits_of(ids).double()), 1)  # one dense layer on both
    joint = side_by_side @ torch.cat((p["join.weight"], p["action"]), 1).t() + p["join.bias"]
    expected = joint.clamp(min=0) @ p["score"]
    state, value = model.states(obs)
    torch.testing.assert_close(model.scores(state, ids).double(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        value.double(), (h @ p["value.weight"].t() + p["value.bias"]).squeeze(1), rtol=1e-5, atol=1e-6
    )


def test_weights_come_from_the_generator_alone_and_in_their_range():
    before = torch.random.get_rng_state()
    one, other = scorer(), scorer()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert one.action.abs().max() <= 64**-0.5 and one.score.abs().max() <= 6**-0.5
    assert one.action.std() > 0.8 * 64**-0.5 / math.sqrt(3)


def test_under_autocast_scores_are_float32_and_not_rounded_to_bfloat16():
    model = scorer()
    with torch.no_grad():
        model.score.mul_(100)
    obs, ids = torch.randn(1, 5), torch.arange(50)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state, value = model.states(obs)
        scores = model.scores(state, ids)
    assert scores.dtype == value.dtype == torch.float32
    assert not torch.equal(scores, scores.bfloat16().float())


def test_the_encoding_is_a_choice():
    asked = []

    def encode(ids, weight):
        asked.append(len(ids))
        return bits_of(ids) @ weight.t()

    model = scorer(encode=encode)
    model.scores(torch.zeros(1, 6), torch.arange(3))
    assert asked == [3] and isinstance(model.state, nn.Sequential)
