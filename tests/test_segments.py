"""Packed softmax, entropy, choice: against PyTorch's own on one state at a time, hand-worked numbers, and huge sets."""

import math

import pytest
import torch

from rlbench import segments
from rlbench.actions import pack

COUNTS = [1, 3, 3, 64, 2, 1]


def layout(counts):
    counts = torch.tensor(counts)
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    return torch.repeat_interleave(torch.arange(len(counts)), counts), offsets


def of_each(values, counts):
    return values.split(counts)


@pytest.mark.parametrize("counts", [COUNTS, [1], [5], [1, 1], [2, 300, 1]])
@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
def test_softmax_and_entropy_are_those_of_each_state(counts, scale):
    states, _ = layout(counts)
    scores = (torch.randn(sum(counts), generator=torch.Generator().manual_seed(0)) * scale).requires_grad_()
    log_p = segments.log_softmax(scores, states, len(counts))
    entropy = segments.entropy(log_p, states, len(counts))
    weight = torch.arange(1.0, len(counts) + 1)
    ours = torch.autograd.grad((entropy * weight).sum() + (log_p * log_p.detach().exp()).sum(), scores)[0]

    wide = scores.detach().double().requires_grad_()
    parts = [part.log_softmax(0) for part in of_each(wide, counts)]
    expected = torch.stack([torch.distributions.Categorical(logits=part).entropy() for part in parts])
    theirs = sum((part * part.detach().exp()).sum() for part in parts) + (expected * weight).sum()
    torch.testing.assert_close(log_p.double(), torch.cat(parts), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(entropy.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.double(), torch.autograd.grad(theirs, wide)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_entropy_of_two_legal_actions_by_hand(dtype):
    """Scores 0.5 and 0.2: entropy 0.68202, and d entropy / d score = -p (log p + entropy) = ∓0.0733."""
    states, _ = layout([2, 1])
    scores = torch.tensor([0.5, 0.2, 0.1], dtype=dtype, requires_grad=True)
    entropy = segments.entropy(segments.log_softmax(scores, states, 2), states, 2)
    entropy.sum().backward()
    tolerance = 1e-4 if dtype == torch.float32 else 3e-3
    assert entropy.dtype == torch.float32 and abs(entropy[0].item() - 0.68202) < tolerance
    torch.testing.assert_close(scores.grad.float(), torch.tensor([-0.0733, 0.0733, 0.0]), rtol=0, atol=tolerance)
    assert entropy[1] == 0 and scores.grad[2] == 0


def test_scores_far_apart_and_far_from_zero():
    states, _ = layout([2, 2, 3])
    scores = torch.tensor([1e4, 1e4, -1e4, 1e4, -3e38, 0.0, -math.inf], requires_grad=True)
    log_p = segments.log_softmax(scores, states, 3)
    entropy = segments.entropy(log_p, states, 3)
    (3 * entropy).sum().backward()
    assert log_p.tolist()[:4] == pytest.approx([-math.log(2), -math.log(2), -2e4, 0.0])
    assert entropy.tolist() == pytest.approx([math.log(2), 0.0, 0.0])
    assert bool(scores.grad.isfinite().all())


def test_one_action_has_log_probability_zero_exactly():
    states, _ = layout([1, 1, 1])
    log_p = segments.log_softmax(torch.tensor([1e30, -7.3, 0.1]), states, 3)
    assert log_p.tolist() == [0, 0, 0] and segments.entropy(log_p, states, 3).tolist() == [0, 0, 0]


def test_pick_takes_the_first_whose_cumulative_probability_exceeds():
    probability = torch.tensor([0.25, 0.5, 0.25, 1.0, 0.5, 0.0, 0.5])
    offsets = torch.tensor([0, 3, 4, 7])
    expected = {0: [0, 0, 0], 0.249: [0, 0, 0], 0.251: [1, 0, 0], 0.501: [1, 0, 2], 0.749: [1, 0, 2], 0.751: [2, 0, 2]}
    for u, places in expected.items():
        assert segments.pick(probability.log(), offsets, torch.full((3,), u)).tolist() == places


def test_pick_never_takes_what_has_no_probability_whatever_the_number():
    log_p = torch.tensor([-math.inf, 0.0, -math.inf, -math.log(2), -math.log(2), -math.inf])
    for u in (0.0, 1 - 2.0**-24, 1 - 2.0**-53, 1.0):
        picked = segments.pick(log_p, torch.tensor([0, 3, 6]), torch.full((2,), u, dtype=torch.float64))
        assert picked.tolist() == [1, 0 if u == 0 else 1]


def test_pick_among_millions():
    """A state of 2 million equal actions after 500,000 of two: the place is u times the count, to one."""
    counts = torch.full((500_001,), 2)
    counts[-1] = 2_000_000
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    log_p = -torch.repeat_interleave(counts.float().log(), counts)
    u = torch.rand(len(counts), generator=torch.Generator().manual_seed(0))
    picked = segments.pick(log_p, offsets, u)
    assert bool((picked[:-1] == (u[:-1] >= 0.5)).all()) and abs(int(picked[-1]) - float(u[-1]) * 2_000_000) <= 1
    assert segments.pick(log_p, offsets, torch.full_like(u, 1 - 2.0**-24))[-1] >= 1_999_990


def test_pick_follows_the_probabilities():
    counts = [4] * 20_000
    _, offsets = layout(counts)
    log_p = torch.tensor([0.1, 0.2, 0.3, 0.4]).log().repeat(len(counts))
    picked = segments.pick(log_p, offsets, torch.rand(len(counts), generator=torch.Generator().manual_seed(1)))
    shares = picked.bincount(minlength=4) / len(counts)
    torch.testing.assert_close(shares, torch.tensor([0.1, 0.2, 0.3, 0.4]), rtol=0, atol=0.015)  # 4 standard errors


def test_argmax_is_the_first_of_equals():
    offsets = torch.tensor([0, 1, 4, 7, 9])
    values = torch.tensor([-5.0, 1, 3, 3, 2, 2, 2, -math.inf, -math.inf])
    assert segments.argmax(values, offsets).tolist() == [0, 1, 0, 0]
    assert segments.argmax(torch.tensor([]), torch.tensor([0])).tolist() == []


def test_argmax_agrees_with_each_state():
    _, offsets = layout(COUNTS)
    values = torch.randn(sum(COUNTS), generator=torch.Generator().manual_seed(2))
    assert segments.argmax(values, offsets).tolist() == [int(part.argmax()) for part in of_each(values, COUNTS)]


def test_places_stay_in_the_list_even_where_there_is_no_number():
    offsets = torch.tensor([0, 2, 4])
    broken = torch.tensor([math.nan, math.nan, 0.0, -1.0])
    assert segments.argmax(broken, offsets)[0] in (0, 1)
    assert all(0 <= place < 2 for place in segments.pick(broken, offsets, torch.tensor([0.3, 0.9])).tolist())


def test_they_take_what_pack_makes():
    sets = pack([[9], [2**63, 5]])
    log_p = segments.log_softmax(torch.tensor([3.0, 1.0, 1.0]), sets.states(), 2)
    assert sets.ids[sets.offsets[:-1] + segments.argmax(log_p, sets.offsets)].tolist() == [9, -(2**63)]
