"""The compiled evaluator: what one state at a time gives, in few compilations."""

import copy

import pytest
import torch

from rlbench import compile as compiling
from rlbench.actions import ActionError, ActionSets, pack
from rlbench.compile import why_not
from rlbench.evaluations.compiled import PackedCompiled, forget_compiled
from rlbench.evaluations.loop import Loop
from rlbench.models.action_scorer import ActionScorer

NEEDS_COMPILER = pytest.mark.skipif(why_not("cpu") is not None, reason=str(why_not("cpu")))
FEATURES = 7
CASE_27 = [1, 3, 3, 64, 2, 1]  # legal actions a state
COUNTS = [[1], [5], [1] * 6, [3] * 4, CASE_27, list(range(1, 20)), [2, 1400, 1, 5]]


@pytest.fixture(autouse=True)
def traced_alone(request, monkeypatch):
    """What is compiled here is traced and run by PyTorch, which takes a second, but in the slow tests."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(compiling, "BACKEND", "eager")
    forget_compiled()
    yield
    forget_compiled()


def model_of(seed=0, hidden=(9, 6)):
    return ActionScorer(FEATURES, hidden, torch.Generator().manual_seed(seed))


def batch_of(counts, seed=0):
    """(obs, sets with ids of all 64 bits, choices)."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.tensor(counts)
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    ids = torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),), generator=generator)
    choice = (torch.rand(len(counts), generator=generator) * counts).long()
    return torch.randn(len(counts), FEATURES, generator=generator), ActionSets(ids, offsets), choice


def outcome(evaluator, model, batch):
    """What an evaluator says of the choices, and the gradients of a loss of all of it."""
    said = evaluator.evaluate(*batch)
    weights = torch.linspace(-1, 2, len(batch[2]))
    loss = (weights * (said.log_prob + 0.3 * said.entropy.square() - said.value)).sum()
    return [*said, *torch.autograd.grad(loss, list(model.parameters()))]


def assert_agrees(counts, tolerance=1e-5):
    model, batch = model_of(), batch_of(counts)
    ours, loop = PackedCompiled(model), Loop(model)
    for one, other in zip(outcome(ours, model, batch), outcome(loop, model, batch), strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    for one, other in zip(ours.log_probs(*batch[:2]), loop.log_probs(*batch[:2]), strict=True):
        assert one.dtype == torch.float32 and not one.requires_grad
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    assert ours.recompiles == 0


@pytest.mark.parametrize("counts", COUNTS, ids=lambda counts: f"{len(counts)}-states")
def test_agrees_with_one_state_at_a_time(counts):
    assert_agrees(counts)


@pytest.mark.slow
@NEEDS_COMPILER
def test_agrees_compiled():
    for counts in (COUNTS[0], CASE_27, COUNTS[5]):
        assert_agrees(counts, 2e-5)


def first_ratios(autocast, order):
    """|ratio - 1| of case 27: log-probs one by one, evaluated again by the compiled function, rows in some order."""
    model, (obs, legal, choice) = model_of(), batch_of(CASE_27)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False):
        then = Loop(model).evaluate(obs, legal, choice).log_prob
        now = PackedCompiled(model).evaluate(obs[order], legal.take(order), choice[order])
    single = legal.counts[order] == 1
    assert now.log_prob.dtype == now.entropy.dtype == now.value.dtype == torch.float32
    assert not now.log_prob[single].any() and not now.entropy[single].any()  # exactly 0
    return ((now.log_prob - then[order]).exp() - 1).abs().max()


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 0, 5, 4, 2, 1]])
def test_the_first_ratio_is_one(autocast, order):
    assert first_ratios(autocast, torch.tensor(order)) < (2e-2 if autocast else 1e-5)


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.parametrize("autocast", [False, True])
def test_the_first_ratio_is_one_compiled(autocast):
    for order in ([0, 1, 2, 3, 4, 5], [3, 0, 5, 4, 2, 1]):
        assert first_ratios(autocast, torch.tensor(order)) < (2e-2 if autocast else 1e-5)


def test_compilations_are_few_as_counts_change():
    model = model_of()
    ours = PackedCompiled(model)
    generator = torch.Generator().manual_seed(3)
    for seed in range(30):
        counts = torch.randint(1, 9, (16,), generator=generator).tolist()
        outcome(ours, model, batch_of(counts, seed))
        ours.log_probs(*batch_of(counts, seed)[:2])
    assert ours.recompiles == 0
    assert (
        len(ours.functions.used) <= 2 * 4
    )  # totals from 50 to 96, of 64, 80, 96 and 112; with a gradient, and without
    for rows in range(30, 33):  # rows of one bucket, as minibatches that differ by one have
        ours.log_probs(*batch_of([2] * rows)[:2])
    assert ours.recompiles == 0 and len(ours.functions.used) <= 2 * 4 + 1


def test_shuffling_a_legal_list_permutes_the_answer_and_nothing_else():
    model, (obs, legal, choice) = model_of(), batch_of([4, 6])
    order = torch.tensor([2, 0, 3, 1, 9, 4, 6, 8, 5, 7])
    place = torch.stack([(order == k).nonzero().squeeze() for k in legal.offsets[:-1] + choice]) - legal.offsets[:-1]
    ours, shuffled = PackedCompiled(model), ActionSets(legal.ids[order], legal.offsets)
    log_p, value = ours.log_probs(obs, legal)
    log_q, same = ours.log_probs(obs, shuffled)
    torch.testing.assert_close(log_q, log_p[order], rtol=0, atol=1e-6)
    assert torch.equal(value, same)
    said, again = ours.evaluate(obs, legal, choice), ours.evaluate(obs, shuffled, place)
    for one, other in zip(said, again, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_weights_loaded_in_place_take_effect():
    model, batch = model_of(), batch_of([2, 3])
    ours = PackedCompiled(model)
    before = ours.evaluate(*batch)
    model.load_state_dict(model_of(seed=1).state_dict())
    after = ours.evaluate(*batch)
    assert (after.value - before.value).abs().min() > 1e-4 and ours.recompiles == 0
    torch.testing.assert_close(after.log_prob, Loop(model).evaluate(*batch).log_prob)


def test_equal_models_share_what_was_compiled_however_they_encode():
    def another(ids, weight):
        raise AssertionError("the compiled function has its own encoding")

    batch = batch_of([2, 3])
    model, other = model_of(), copy.deepcopy(model_of(seed=1))
    other.encode = another
    first, second = PackedCompiled(model), PackedCompiled(other)
    first.evaluate(*batch)
    said = second.evaluate(*batch)
    assert first.build_s > 0 == second.build_s and second.recompiles == 0 and other.encode is another
    torch.testing.assert_close(said.value, Loop(model_of(seed=1)).evaluate(*batch).value)
    wider = PackedCompiled(model_of(hidden=(9, 7)))
    wider.evaluate(*batch)
    assert wider.build_s > 0 and wider.recompiles == 0


def test_a_gradient_may_be_asked_for_later():
    model, batch = model_of(), batch_of([2, 3])
    ours = PackedCompiled(model)
    with torch.no_grad():
        assert not ours.evaluate(*batch).log_prob.requires_grad
    assert outcome(ours, model, batch)[-1].any() and ours.recompiles == 0


def test_what_cannot_be_asked_is_refused():
    ours, obs = PackedCompiled(model_of()), torch.zeros(2, FEATURES)
    with pytest.raises(ActionError, match="state 1 has no legal action"):
        ours.log_probs(obs, pack([[3], []]))
    with pytest.raises(ActionError, match="3 sets of actions for 2 states"):
        ours.evaluate(obs, pack([[1], [2], [3]]), torch.zeros(2, dtype=torch.int64))


def test_parameters_that_are_laid_out_anew_compile_a_function_of_their_own():
    """The native update does that. What a process keeps may not be compiled anew for it, each time that the layout changes."""
    model, batch = model_of(), batch_of(CASE_27)
    ours = PackedCompiled(model)
    before = ours.log_probs(*batch[:2])
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.data = parameter.data.t().contiguous().t()
    for _ in range(2):
        for one, other in zip(ours.log_probs(*batch[:2]), before, strict=True):
            torch.testing.assert_close(one, other)
    assert PackedCompiled(model_of(seed=1)).log_probs(*batch[:2])[0].isfinite().all()
    assert ours.recompiles == 0
