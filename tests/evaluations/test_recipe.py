"""The lines in the docstring of `rlbench.evaluations` replace an `evaluate()` that goes through samples one by one."""

import textwrap

import torch
from torch import nn

import rlbench.evaluations


class SomebodysNetwork(nn.Module):
    """Of a reader: pairs of features and an id's low 8 bits through one layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3 + 8, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, obs, ids):
        bits = ((ids[:, None] >> torch.arange(8)) & 1).float()
        return self.layers(torch.cat((obs, bits), 1)).squeeze(1)


def evaluate(network, obs, ids_of_each_state, choice):
    """Theirs, sample by sample."""
    log_probs, entropies = [], []
    for features, ids, chosen in zip(obs, ids_of_each_state, choice, strict=True):
        scores = network(features.expand(len(ids), -1), torch.tensor(ids))
        policy = torch.distributions.Categorical(logits=scores)
        log_probs.append(policy.log_prob(chosen))
        entropies.append(policy.entropy())
    return torch.stack(log_probs), torch.stack(entropies)


def lines():
    """The indented block, ten lines at most."""
    block = rlbench.evaluations.__doc__.split("yours:\n\n")[1]
    assert len(block.strip().splitlines()) <= 10
    return textwrap.dedent(block)


def test_the_lines_give_the_same_as_sample_by_sample():
    torch.manual_seed(0)
    network, obs = SomebodysNetwork(), torch.randn(5, 3)
    ids_of_each_state = [[7], [1, 2, 3], [255, 0], list(range(40)), [9]]
    choice = torch.tensor([0, 2, 1, 17, 0])
    names = {"network": network, "obs": obs, "ids_of_each_state": ids_of_each_state, "choice": choice}
    exec(lines(), names)

    gradients = []
    for log_prob, entropy in ((names["log_prob"], names["entropy"]), evaluate(network, obs, ids_of_each_state, choice)):
        loss = (log_prob * torch.arange(5)).sum() - 2 * entropy.sum()
        gradients.append([log_prob, entropy, *torch.autograd.grad(loss, list(network.parameters()))])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    assert names["log_prob"][0] == 0 and names["entropy"][4] == 0
