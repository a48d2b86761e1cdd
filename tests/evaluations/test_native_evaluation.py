"""The native evaluator beside the plainest one: the same answers, choices by inverse CDF, parameters wherever they lie."""

import copy
import resource
from itertools import pairwise

import pytest
import torch

from rlbench.actions import ActionError, ActionSets, pack
from rlbench.config import PPOConfig
from rlbench.evaluations.loop import Loop
from rlbench.evaluations.native import PackedNative
from rlbench.models.action_scorer import ActionScorer
from rlbench.segments import pick
from rlbench.updates.ppo_native import PPONative


def make(obs_size=6, hidden=(17, 12), counts=(1, 3, 3, 64, 2, 1), seed=0):
    generator = torch.Generator().manual_seed(seed)
    model = ActionScorer(obs_size, hidden, generator)
    legal = pack([torch.randint(-(2**63), 2**63 - 1, (n,), generator=generator) for n in counts])
    choice = (torch.rand(len(counts), generator=generator) * torch.tensor(counts)).long()
    return model, torch.randn(len(counts), obs_size, generator=generator), legal, choice


def test_it_agrees_with_one_state_at_a_time():
    model, obs, legal, choice = make()
    native, loop = PackedNative(model), Loop(model)
    for one, other in zip(native.log_probs(obs, legal), loop.log_probs(obs, legal), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    gradients = []
    for evaluator in (native, loop):
        found = evaluator.evaluate(obs, legal, choice)
        model.zero_grad()
        (found.log_prob.sum() - 2 * found.entropy.square().sum() + found.value.exp().sum()).backward()
        gradients.append([*found, *(parameter.grad for parameter in model.parameters())])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_ratio_is_one_before_any_step_whatever_the_path():
    model, obs, legal, choice = make()
    native = PackedNative(model)
    stored = torch.cat(
        [
            Loop(model).evaluate(obs[i : i + 1], legal.take(torch.tensor([i])), choice[i : i + 1]).log_prob.detach()
            for i in range(len(obs))
        ]
    )
    order = torch.randperm(len(obs))
    _, acted, _ = native.act(obs, legal, torch.rand(len(obs)))
    assert acted.shape == (len(obs),)
    for rows in (torch.arange(len(obs)), order):
        now = native.evaluate(obs[rows], legal.take(rows), choice[rows]).log_prob.detach()
        assert ((now - stored[rows]).exp() - 1).abs().max() < 1e-5
        assert now[rows == 0].item() == now[rows == 5].item() == 0.0
    log_p, _ = native.log_probs(obs, legal)
    assert torch.equal(log_p[legal.offsets[:-1] + choice], native.evaluate(obs, legal, choice).log_prob)


def test_shuffling_a_list_permutes_the_answer():
    model, obs, legal, _ = make(counts=(9,))
    native, order = PackedNative(model), torch.randperm(9)
    log_p, value = native.log_probs(obs, legal)
    shuffled, same = native.log_probs(obs, ActionSets(legal.ids[order], legal.offsets))
    torch.testing.assert_close(shuffled, log_p[order], rtol=0, atol=1e-6)
    assert torch.equal(value, same)


def test_choices_are_by_inverse_cdf():
    model, obs, legal, _ = make(counts=(1, 4, 40) * 100, obs_size=3)
    native = PackedNative(model)
    uniform = torch.rand(300, generator=torch.Generator().manual_seed(3))
    uniform[:3] = 0.0
    uniform[3:6] = 1 - 2**-24
    choice, log_prob, value = native.act(obs, legal, uniform)
    log_p, expected_value = native.log_probs(obs, legal)
    assert torch.equal(value, expected_value) and torch.equal(log_prob, log_p[legal.offsets[:-1] + choice])
    for i, (a, b) in enumerate(pairwise(legal.offsets.tolist())):
        running = log_p[a:b].double().exp().cumsum(0)
        assert int(choice[i]) == int((running <= float(uniform[i]) * running[-1]).sum())
    assert torch.equal(choice, pick(log_p, legal.offsets, uniform))
    assert choice[:3].tolist() == [0, 0, 0] and choice[3:6].tolist() == [0, 3, 39]


def test_an_action_without_probability_is_never_chosen():
    model, obs, legal, _ = make(counts=(4,) * 50)
    with torch.no_grad():
        model.score *= 1e5
    native = PackedNative(model)
    log_p, _ = native.log_probs(obs, legal)
    assert log_p.double().exp().min() == 0
    for uniform in (0.0, 0.5, 1 - 2**-24):
        _, log_prob, _ = native.act(obs, legal, torch.full((50,), uniform))
        assert log_prob.double().exp().min() > 0


@pytest.mark.parametrize("flat", [False, True])
def test_new_weights_take_effect(flat):
    """Loaded in place, assigned, or stepped on by an optimizer; in memory of their own, or in the native update's vector."""
    model, obs, legal, _ = make()
    other = make(seed=5)[0].state_dict()
    if flat:
        PPONative(model, PPOConfig(), None, None)
    native = PackedNative(model)
    before = native.log_probs(obs, legal)[0]
    for load in (lambda: model.load_state_dict(other), lambda: model.load_state_dict(other, assign=True)):
        load()
        log_p = native.log_probs(obs, legal)[0]
        assert not torch.equal(before, log_p)
        torch.testing.assert_close(log_p, Loop(model).log_probs(obs, legal)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
def test_any_optimizer_goes_with_it(kind):
    pairs = []
    for evaluator in (PackedNative, Loop):
        model, obs, legal, choice = make()
        optimizer, asked = getattr(torch.optim, kind)(model.parameters(), lr=1e-3), evaluator(model)
        for _ in range(3):
            optimizer.zero_grad()
            found = asked.evaluate(obs, legal, choice)
            (found.log_prob.sum() + found.entropy.sum() + found.value.square().sum()).backward()
            optimizer.step()
        pairs.append(asked.evaluate(obs, legal, choice))
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_autograd_knows_of_weights_that_changed_in_between():
    model, obs, legal, choice = make()
    found = PackedNative(model).evaluate(obs, legal, choice)
    with torch.no_grad():
        model.score.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.value.sum().backward()


def test_two_questions_open_at_once():
    model, obs, legal, choice = make()
    native = PackedNative(model)
    first = native.evaluate(obs[:1], legal.take(torch.tensor([0])), choice[:1])
    second = native.evaluate(obs, legal, choice)  # with a larger set than the first
    (first.value.sum() + second.entropy.sum()).backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    loop = Loop(model).evaluate(obs, legal, choice)
    (loop.value[0] + loop.entropy.sum()).backward()
    for one, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(one, parameter.grad, rtol=1e-4, atol=1e-5)


def test_autocast_changes_nothing():
    model, obs, legal, choice = make()
    native = PackedNative(model)
    expected = native.evaluate(obs, legal, choice)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = native.evaluate(obs, legal, choice)
        log_p, _ = native.log_probs(obs, legal)
    assert log_p.dtype == torch.float32 and all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_what_is_refused():
    model, obs, legal, choice = make()
    native = PackedNative(model)
    with pytest.raises(ActionError, match="state 3 has no legal action"):
        native.log_probs(obs[:4], pack([[1], [2], [3], []]))
    with pytest.raises(ActionError, match="state 1 has 3 legal actions, and choice 3 is refused"):
        native.evaluate(obs, legal, torch.tensor([0, 3, 0, 0, 0, 0]))
    with pytest.raises(ActionError, match="state 5 has 1 legal actions, and choice -1 is refused"):
        native.evaluate(obs, legal, torch.tensor([0, 0, 0, 0, 0, -1]))
    with pytest.raises(ActionError, match="offsets run from 0 to 73"):
        native.log_probs(obs, ActionSets(legal.ids, legal.offsets - (legal.offsets > 70).long()))
    with pytest.raises(ActionError, match="offsets fall behind state 1"):
        native.log_probs(obs[:3], ActionSets(legal.ids[:3], torch.tensor([0, 2, 1, 3])))
    with pytest.raises(ActionError, match="offsets run from 1"):
        native.log_probs(obs[:1], ActionSets(legal.ids[:3], torch.tensor([1, 3])))
    with pytest.raises(ActionError, match="both torch.int64"):
        native.log_probs(obs, ActionSets(legal.ids.int(), legal.offsets))
    for wrong in (obs[:5], obs[:, :5], obs.double(), obs[0]):
        with pytest.raises(ActionError, match=r"accepted by native code: \(B, 6\) torch.float32"):
            native.log_probs(wrong, legal)
    with pytest.raises(ActionError, match="packed sets"):
        native.log_probs(obs, torch.ones(6, 3, dtype=torch.bool))
    with pytest.raises(ActionError, match="choice"):
        native.evaluate(obs, legal, choice[:5])
    with pytest.raises(ActionError, match="uniform"):
        native.act(obs, legal, torch.rand(6).double())
    with pytest.raises(TypeError, match="score is now"):
        copy_of = copy.deepcopy(model)
        asked = PackedNative(copy_of)
        copy_of.score = torch.nn.Parameter(torch.zeros(3))
        asked.log_probs(obs, legal)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(native)


def test_no_states_and_rows_with_gaps():
    model, obs, legal, choice = make()
    native = PackedNative(model)
    log_p, value = native.log_probs(obs[:0], ActionSets(legal.ids[:0], torch.zeros(1, dtype=torch.int64)))
    assert log_p.shape == value.shape == (0,)
    wide = torch.randn(6, 20)
    wide[:, 3:9] = obs
    for view in (wide[:, 3:9], obs.t().contiguous().t()):
        assert not view.is_contiguous()
        for one, other in zip(native.log_probs(view, legal), native.log_probs(obs, legal), strict=True):
            assert torch.equal(one, other)
        assert torch.equal(native.evaluate(view, legal, choice).value, native.evaluate(obs, legal, choice).value)


def test_memory_is_flat_over_many_calls():
    model, obs, legal, choice = make()
    native = PackedNative(model)

    def ask(times):
        for _ in range(times):
            native.evaluate(obs, legal, choice).value.sum().backward()
            native.act(obs, legal, torch.zeros(6))

    ask(300)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ask(3000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048  # KiB
