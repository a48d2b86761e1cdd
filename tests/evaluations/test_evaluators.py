"""Every evaluator agrees with one state at a time: outcomes, gradients, order of rows, precision, and what is refused."""

import itertools

import pytest
import torch

from rlbench.actions import ActionError, ActionSets, pack, unpack
from rlbench.evaluations.grouped import Grouped
from rlbench.evaluations.loop import Loop
from rlbench.evaluations.packed import SMALL, Packed
from rlbench.evaluations.padded import Padded
from rlbench.evaluations.padded_softmax import PaddedSoftmax
from rlbench.evaluations.same_count import SameCountOrLoop
from rlbench.evaluations.views import Rows, Spans, view_of
from rlbench.models.action_scorer import ActionScorer
from rlbench.speedups.action_encoding import VARIANTS as ENCODINGS

EVALUATORS = [SameCountOrLoop, Grouped, Padded, PaddedSoftmax, Packed]
ALL = [Loop, *EVALUATORS]
SIX = [1, 3, 3, 64, 2, 1]
COUNTS = {
    "six": SIX,
    "one": [1],
    "one large": [70],
    "ones": [1, 1, 1],
    "same": [4] * 5,
    "same large": [40] * 33,
    "all different": list(range(1, 60)),
    "one of 1400": [3, 20, 1400, 1, 7],
}


def case(counts, seed=0, features=6, hidden=(17, 12), encode="fused"):
    generator = torch.Generator().manual_seed(seed)
    model = ActionScorer(features, hidden, generator, ENCODINGS[encode])
    legal = pack([torch.randint(-(2**63), 2**63 - 1, (n,), generator=generator) for n in counts])
    choice = (torch.rand(len(counts), generator=generator) * torch.tensor(counts)).long()
    obs = torch.randn(len(counts), features, generator=generator)
    return model, obs, legal, choice, torch.randn(3, len(counts), generator=generator)


def outcome(evaluator, obs, legal, choice, weights):
    """What it says, and the gradients of a fixed sum of that."""
    now = evaluator.evaluate(obs, legal, choice)
    parameters = list(evaluator.model.parameters())
    return now, torch.autograd.grad((torch.stack(now) * weights).sum(), parameters)


def assert_same(found, expected, tolerance=1e-5):
    for one, other in zip(found[0], expected[0], strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    largest = max(float(gradient.abs().max()) for gradient in expected[1])
    for one, other in zip(found[1], expected[1], strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance * largest)


def test_the_batches_reach_both_ways_through_packed():
    sizes = {name: sum(counts) for name, counts in COUNTS.items()}
    assert sizes["six"] < SMALL < min(sizes["same large"], sizes["all different"], sizes["one of 1400"])
    kinds = {name: type(view_of(torch.zeros(len(counts), 1), case(counts)[2])) for name, counts in COUNTS.items()}
    assert kinds["same large"] is kinds["one large"] is Rows and kinds["all different"] is Spans


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("make", EVALUATORS)
def test_it_agrees_with_one_state_at_a_time(make, name):
    model, *asked = case(COUNTS[name])
    assert_same(outcome(make(model), *asked), outcome(Loop(model), *asked))
    obs, legal, *_ = asked
    for one, other in zip(make(model).log_probs(obs, legal), Loop(model).log_probs(obs, legal), strict=True):
        assert one.shape == other.shape and one.dtype == torch.float32 and not one.requires_grad
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("encode", ENCODINGS)
@pytest.mark.parametrize("name", ["six", "same large", "all different"])
def test_packed_agrees_with_every_encoding(encode, name):
    model, *asked = case(COUNTS[name], encode=encode)
    plain, *_ = case(COUNTS[name], encode="loop")
    assert_same(outcome(Packed(model), *asked), outcome(Loop(plain), *asked))


@pytest.mark.parametrize("make", ALL)
def test_against_the_definition_in_float64(make):
    """Softmax, entropy and choice written out from the scores of each state."""
    model, obs, legal, choice, _ = case(SIX)
    now = make(model).evaluate(obs, legal, choice)
    with torch.no_grad():
        for i, ids in enumerate(unpack(legal)):
            joint, value = model.states(obs[i : i + 1])
            scores = model.scores(joint, pack([ids]).ids).double()
            p = scores.exp() / scores.exp().sum()
            assert now.log_prob[i].item() == pytest.approx(p[choice[i]].log().item(), abs=1e-5)
            assert now.entropy[i].item() == pytest.approx(-(p * p.log()).sum().item(), abs=1e-5)
            assert now.value[i].item() == pytest.approx(value.item(), abs=1e-5)


def stored_one_by_one(model, obs, legal, choice):
    """Log-probabilities as a collector stores them: each state asked about alone."""
    parts = [Loop(model).log_probs(obs[i : i + 1], legal.slice(i, i + 1))[0] for i in range(len(obs))]
    return torch.stack([log_p[c] for log_p, c in zip(parts, choice, strict=True)])


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2], [1, 2], [3], [0, 5]])
def test_ratios_are_one_before_any_update(make, order):
    model, obs, legal, choice, _ = case(SIX)
    stored, index = stored_one_by_one(model, obs, legal, choice), torch.tensor(order)
    now = make(model).evaluate(obs[index], legal.take(index), choice[index])
    log_ratio = now.log_prob.detach() - stored[index]
    assert float((log_ratio.exp() - 1).abs().max()) < 1e-5
    assert float((log_ratio.exp() - 1 - log_ratio).mean().abs()) < 1e-6  # approximate KL
    ones = torch.tensor([SIX[i] == 1 for i in order])
    assert bool((now.log_prob[ones] == 0).all()) and bool((now.entropy[ones] == 0).all())


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("stored_in", [torch.float32, torch.bfloat16])
def test_ratios_under_bfloat16_autocast(make, stored_in):
    """Within 2e-2 of those stored in float32, too, and scores may be large."""
    model, obs, legal, choice, weights = case([*SIX, 30, 900, 400], hidden=(64, 64))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=stored_in == torch.bfloat16):
        stored = stored_one_by_one(model, obs, legal, choice)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        now = make(model).evaluate(obs, legal, choice)
    assert all(part.dtype == torch.float32 for part in now)
    assert float(((now.log_prob.detach() - stored).exp() - 1).abs().max()) < 2e-2
    assert now.log_prob[0] == now.log_prob[5] == 0
    (torch.stack(now) * weights).sum().backward()
    assert all(p.grad.dtype == torch.float32 and bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize("make", ALL)
def test_gradients_under_autocast_are_near_those_in_float32(make):
    model, *asked = case([*SIX, 30, 900, 400], hidden=(64, 64))
    expected = outcome(Loop(model), *asked)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = outcome(make(model), *asked)
    assert_same(found, expected, tolerance=0.05)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("counts", [[1, 1, 1, 1], [1, 2, 5]])
def test_one_action_has_no_gradient(make, counts):
    model, obs, legal, choice, _ = case(counts)
    now = make(model).evaluate(obs, legal, choice)
    alone = torch.tensor([n == 1 for n in counts]).float()
    gradient = torch.autograd.grad(((now.log_prob + 3 * now.entropy) * alone).sum(), [model.action, model.score])
    assert all(bool((part == 0).all()) for part in gradient)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("counts", [[2, 5, 1], [900, 400, 7]])
def test_scores_far_apart_give_finite_gradients(make, counts):
    model, obs, legal, choice, weights = case(counts)
    with torch.no_grad():
        model.score.mul_(1e4)
    found = outcome(make(model), obs, legal, choice, 100 * weights)
    assert all(bool(part.isfinite().all()) for part in itertools.chain(*found))


@pytest.mark.parametrize("make", ALL)
def test_shuffling_a_set_permutes_the_answer_and_nothing_else(make):
    model, obs, legal, choice, _ = case(SIX)
    generator = torch.Generator().manual_seed(1)
    orders = [torch.randperm(n, generator=generator) for n in SIX]
    shuffled = pack([legal.slice(i, i + 1).ids[order] for i, order in enumerate(orders)])
    where = torch.stack([order.argsort()[c] for order, c in zip(orders, choice, strict=True)])
    before, after = make(model).evaluate(obs, legal, choice), make(model).evaluate(obs, shuffled, where)
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    found = make(model).log_probs(obs, shuffled)[0].split(SIX)
    expected = make(model).log_probs(obs, legal)[0].split(SIX)
    for one, other, order in zip(found, expected, orders, strict=True):
        torch.testing.assert_close(one, other[order], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", ALL)
def test_a_state_without_an_action_and_sets_that_do_not_match_are_refused(make):
    model, obs, legal, choice, _ = case([2, 3, 4])
    empty = ActionSets(legal.ids[:6], torch.tensor([0, 2, 2, 6]))
    for ask in (lambda *a: make(model).log_probs(*a), lambda *a: make(model).evaluate(*a, choice)):
        with pytest.raises(ActionError, match="state 1 has no legal action"):
            ask(obs, empty)
        with pytest.raises(ActionError, match="3 sets of actions for 2 states"):
            ask(obs[:2], legal)
    with pytest.raises(ActionError, match="state 0 has no legal action"):
        make(model).log_probs(obs[:1], pack([[]]))


@pytest.mark.parametrize("make", ALL)
def test_nothing_is_built_and_nothing_given_is_changed(make):
    model, obs, legal, choice, weights = case(COUNTS["one of 1400"])
    before = [t.clone() for t in (obs, *legal, choice, *model.parameters())]
    evaluator = make(model)
    outcome(evaluator, obs, legal, choice, weights)
    evaluator.log_probs(obs, legal)
    assert (evaluator.build_s, evaluator.recompiles) == (0.0, 0)
    assert all(torch.equal(a, b) for a, b in zip(before, (obs, *legal, choice, *model.parameters()), strict=True))
