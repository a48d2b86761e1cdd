import torch
from torch import nn

from rlbench.models import forward_flops, mlp, parameter_count


def test_layers_and_counts():
    network = mlp(4, (120, 84), 2)
    kinds = [type(layer) for layer in network]
    assert kinds == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert parameter_count(network) == 4 * 120 + 120 + 120 * 84 + 84 + 84 * 2 + 2
    assert forward_flops((4, 120, 84, 2)) == 2 * (480 + 10_080 + 168)
    assert network(torch.zeros(7, 4)).shape == (7, 2)


def test_without_hidden_layers_it_is_linear():
    assert [type(layer) for layer in mlp(3, (), 1)] == [nn.Linear]


def test_weights_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    one = mlp(4, (8,), 2, torch.Generator().manual_seed(3))
    other = mlp(4, (8,), 2, torch.Generator().manual_seed(3))
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    assert one[0].weight.abs().max() <= 0.5 and one[0].weight.std() > 0.2  # uniform in ±1/2: 0.289
