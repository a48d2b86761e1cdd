"""What packed does by hand: its backward pass against numerical derivatives, both views, and what it refuses."""

import pytest
import torch

from rlbench.actions import ActionSets
from rlbench.evaluations.packed import SMALL, Chosen, Packed
from rlbench.evaluations.views import Rows, Spans, view_of
from rlbench.models.action_scorer import ActionScorer
from rlbench.models.encodings import bits_of, encode_fused


def sets_of(counts, seed=0):
    counts = torch.tensor(counts)
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    generator = torch.Generator().manual_seed(seed)
    return ActionSets(torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),), generator=generator), offsets)


def double_encode(ids, weight):
    return bits_of(ids).double() @ weight.t()


@pytest.mark.parametrize("counts", [[3, 1, 5, 2], [4, 4, 4], [6]])
def test_the_backward_pass_is_the_derivative(counts):
    """Against differences of the forward pass, in float64."""
    legal, generator = sets_of(counts), torch.Generator().manual_seed(1)
    view = view_of(torch.zeros(len(counts), 1), legal)
    joint, weight, v = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((len(counts), 3), (3, 64), (3,))
    )
    at = view.at(torch.tensor([n - 1 for n in counts]))

    def outcome(joint, weight, v):
        return Chosen.apply(joint, weight, v, double_encode, legal.ids, view, at)

    assert torch.autograd.gradcheck(outcome, (joint, weight, v))


def test_gradients_may_be_asked_for_twice_but_not_of_gradients():
    model = ActionScorer(4, (8,), torch.Generator().manual_seed(0), encode_fused)
    legal, obs = sets_of([SMALL, 1, 7]), torch.randn(3, 4)
    now = Packed(model).evaluate(obs, legal, torch.tensor([5, 0, 3]))
    once = torch.autograd.grad(now.log_prob.sum(), list(model.parameters()), retain_graph=True, allow_unused=True)
    again = torch.autograd.grad(now.log_prob.sum(), list(model.parameters()), retain_graph=True, allow_unused=True)
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(once, again, strict=True))
    assert once[0].abs().sum() > 0
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(now.log_prob.sum(), model.score, create_graph=True)


def test_two_evaluations_may_be_open_at_once():
    model = ActionScorer(4, (8,), torch.Generator().manual_seed(0), encode_fused)
    legal, obs, choice = sets_of([SMALL, 1, 7]), torch.randn(3, 4), torch.tensor([5, 0, 3])
    one = Packed(model).evaluate(obs, legal, choice)
    other = Packed(model).evaluate(obs + 1, sets_of([SMALL + 5, 2, 7], seed=1), choice)
    alone = Packed(model).evaluate(obs, legal, choice)
    (first,) = torch.autograd.grad(one.log_prob.sum() + 0 * other.log_prob.sum(), model.score)
    (second,) = torch.autograd.grad(alone.log_prob.sum(), model.score)
    assert torch.equal(first, second)


@pytest.mark.parametrize("counts", [[2, 3], [3, 3], [SMALL, 3], [5]])
def test_a_view_can_be_kept(counts):
    model = ActionScorer(4, (8,), torch.Generator().manual_seed(0), encode_fused)
    legal, obs = sets_of(counts), torch.randn(len(counts), 4)
    choice, packed = torch.zeros(len(counts), dtype=torch.int64), Packed(model)
    view = view_of(obs, legal)
    assert torch.equal(packed.log_probs(obs, legal, view)[0], packed.log_probs(obs, legal)[0])
    for one, other in zip(packed.evaluate(obs, legal, choice, view), packed.evaluate(obs, legal, choice), strict=True):
        assert torch.equal(one, other)


def test_both_views_compute_the_same():
    legal, generator = sets_of([3, 3, 3, 3]), torch.Generator().manual_seed(1)
    rows, spans = Rows(4, 3), Spans(legal.offsets, legal.counts, 12, 3)
    scores, wide, weights, joint = (torch.randn(s, generator=generator) for s in ((12,), (12, 5), (12,), (4, 5)))
    choice = torch.tensor([0, 2, 1, 1])
    torch.testing.assert_close(rows.log_softmax(rows.shape(scores)).flatten(), spans.log_softmax(scores))
    torch.testing.assert_close(rows.weighted_rows(wide, weights), spans.weighted_rows(wide, weights))
    torch.testing.assert_close(rows.sums(rows.shape(scores)), spans.sums(scores))
    assert torch.equal(rows.at(choice), spans.at(choice)) and rows.at(choice).tolist() == [0, 5, 7, 10]
    assert torch.equal(rows.rows_of(joint), spans.rows_of(joint))
    assert torch.equal(rows.matrix(scores), spans.matrix(scores))


def test_spans_are_summed_in_order_so_that_runs_repeat():
    model = ActionScorer(4, (8,), torch.Generator().manual_seed(0), encode_fused)
    legal, obs = sets_of([SMALL, 1, 7]), torch.randn(3, 4)
    gradients = [
        torch.autograd.grad(Packed(model).evaluate(obs, legal, torch.tensor([5, 0, 3])).entropy.sum(), model.action)[0]
        for _ in range(2)
    ]
    assert torch.equal(*gradients)
