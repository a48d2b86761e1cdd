"""Masked policies over a fixed number of actions: value and gradient of entropy, by hand and beside PyTorch's."""

import pytest
import torch
from torch import nn

from rlbench.evaluations.dense import Dense, entropy, masked_log_softmax


@pytest.mark.parametrize("weight", [1.0, 1e-3, 50.0])
def test_entropy_of_a_masked_policy_by_hand(weight):
    """Logits [0.5, 0.2, 0.1] of which the last is illegal: entropy 0.68202, gradient about [-0.0733, +0.0733, 0]."""
    logits = torch.tensor([[0.5, 0.2, 0.1]], requires_grad=True)
    found = entropy(masked_log_softmax(logits, torch.tensor([[True, True, False]])))
    (weight * found.sum()).backward()
    assert found.item() == pytest.approx(0.68202, abs=1e-5)
    torch.testing.assert_close(logits.grad / weight, torch.tensor([[-0.0733, 0.0733, 0.0]]), rtol=0, atol=1e-4)


def test_one_legal_action():
    logits = torch.tensor([[0.5, 0.2]], requires_grad=True)
    log_p = masked_log_softmax(logits, torch.tensor([[False, True]]))
    (entropy(log_p).sum() * 7 + log_p[0, 1] * 3).backward()
    assert log_p[0, 1] == 0 and entropy(log_p).item() == 0 and logits.grad.tolist() == [[0, 0]]


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 5)

    def forward(self, obs):
        out = self.layer(obs)
        return out[:, :4], out[:, 4]


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_evaluation_is_that_of_a_categorical(masked, autocast):
    model, obs, choice = Both(), torch.randn(6, 3), torch.tensor([0, 1, 2, 3, 0, 0])
    legal = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)) < 0.5
    legal[torch.arange(6), choice] = True
    legal = legal if masked else None
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        now = Dense(model).evaluate(obs, legal, choice)
        scores, value = model(obs)
    scores = scores.detach().float()
    for i in range(6):
        rows = torch.ones(4, dtype=torch.bool) if legal is None else legal[i]
        one = torch.distributions.Categorical(logits=scores[i][rows])
        place = int(rows[: choice[i]].sum())
        assert now.log_prob[i].item() == pytest.approx(one.log_prob(torch.tensor(place)).item(), abs=1e-5)
        assert now.entropy[i].item() == pytest.approx(one.entropy().item(), abs=1e-5)
    assert all(part.dtype == torch.float32 for part in now) and torch.equal(now.value, value.float())
    (now.entropy.sum() * 5).backward()
    assert bool(model.layer.weight.grad.isfinite().all())
