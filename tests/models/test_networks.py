"""Networks against plain NumPy, their costs against numbers worked by hand and against PyTorch's own counter."""

import copy

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from rlbench.batch import Layout, Transitions
from rlbench.buffers import RowSpec
from rlbench.config import ConfigError, DQNConfig
from rlbench.models import (
    describe_network,
    make_network,
    mlp,
    network_flops,
    network_update_flops,
    parameter_count,
)
from rlbench.models.conv import FILTERS, BarConv
from rlbench.speedups.optimizer import for_loop
from rlbench.speedups.update import EagerUpdate

WINDOWED = RowSpec(3 * 4 + 2, 3, layout=Layout(3, 4, 2))
KINDS = ("mlp", "dueling", "conv")


def build(kind, spec=WINDOWED, hidden=(6, 5), seed=0):
    config = DQNConfig(network=kind, hidden=hidden)
    return make_network(config, spec, torch.Generator().manual_seed(seed))


def arrays(network):
    """Weights and biases, layer after layer, in float64."""
    return [p.detach().double().numpy() for p in network.parameters()]


def dense_stack(x, layers):
    for i in range(0, len(layers), 2):
        x = x @ layers[i].T + layers[i + 1]
        x = np.maximum(x, 0) if i + 2 < len(layers) else x
    return x


def plain_mlp(layers, obs, spec):
    return dense_stack(obs, layers)


def plain_dueling(layers, obs, spec):
    out = []
    for row in dense_stack(obs, layers):
        value, advantages = row[0], row[1:]
        out.append([value + a - sum(advantages) / len(advantages) for a in advantages])
    return np.array(out)


def plain_conv(layers, obs, spec):
    """Bar after bar, filter after filter."""
    weight, bias, *rest = layers
    window, features, _ = spec.layout
    rows = []
    for row in obs:
        found = []
        for bar in range(window):
            numbers = row[bar * features : (bar + 1) * features]
            found += [
                max(0.0, sum(w * x for w, x in zip(weight[c], numbers, strict=True)) + bias[c])
                for c in range(len(bias))
            ]
        rows.append(found + list(row[window * features :]))
    return dense_stack(np.array(rows), rest)


PLAIN = {"mlp": plain_mlp, "dueling": plain_dueling, "conv": plain_conv}
SPECS = {
    "a window": WINDOWED,
    "one bar": RowSpec(4 + 2, 3, layout=Layout(1, 4, 2)),
    "one action": RowSpec(3 * 4 + 2, 1, layout=Layout(3, 4, 2)),
    "no own numbers": RowSpec(5 * 1, 2, layout=Layout(5, 1, 0)),
    "one number": RowSpec(1, 1, layout=Layout(1, 1, 0)),
}


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("hidden", [(6, 5), (1,), ()], ids=str)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("kind", KINDS)
def test_network_gives_what_plain_numpy_gives(kind, spec, hidden, rows):
    network = build(kind, spec, hidden)
    obs = np.random.default_rng(1).standard_normal((rows, spec.obs_size)).astype(np.float32)
    found = network(torch.from_numpy(obs))
    assert found.shape == (rows, spec.num_actions) and found.dtype == torch.float32
    expected = PLAIN[kind](arrays(network), obs.astype(np.float64), spec)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-5, atol=1e-5)


def test_dueling_by_hand():
    """V = 2, A = (1, 0, 5), whose mean is 2: Q = (1, 0, 5)."""
    network = build("dueling", RowSpec(1, 3), ())
    with torch.no_grad():
        network.layers[0].weight.zero_()
        network.layers[0].bias.copy_(torch.tensor([2.0, 1.0, 0.0, 5.0]))
    assert network(torch.ones(1, 1)).tolist() == [[1.0, 0.0, 5.0]]


def test_a_mean_of_q_is_the_value_stream():
    network = build("dueling")
    obs = torch.randn(4, 14, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(network(obs).mean(1), network.layers(obs)[:, 0])


def test_conv_by_hand():
    """Two bars (1, 2), (3, -1) and one own number 10; filters f = x + 2y and g = -x: relu 5, 0 and 1, 0; all of them summed."""
    network = BarConv(Layout(2, 2, 1), (), 1, filters=2)
    with torch.no_grad():
        network.filters.weight.copy_(torch.tensor([[1.0, 2.0], [-1.0, 0.0]]))
        network.filters.bias.zero_()
        network.layers[0].weight.copy_(torch.tensor([[1.0, 10.0, 100.0, 1000.0, 0.5]]))
        network.layers[0].bias.fill_(0.25)
    assert network(torch.tensor([[1.0, 2.0, 3.0, -1.0, 10.0]])).item() == 5 + 100 + 5 + 0.25


def test_conv_is_pytorchs_convolution_with_a_kernel_of_one():
    network = build("conv")
    bars = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.conv1d(bars.mT, network.filters.weight.unsqueeze(2), network.filters.bias)
    torch.testing.assert_close(network.filters(bars), expected.mT)


def test_conv_reads_views_of_wider_rows():
    """Replay on the device hands out columns of packed rows."""
    rows = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
    network, view = build("conv"), rows.split([14, 14, 12], dim=1)[1]
    assert torch.equal(network(view), network(view.contiguous()))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_come_from_the_generator_alone(kind):
    before = torch.random.get_rng_state()
    one, same, other = build(kind, seed=3), build(kind, seed=3), build(kind, seed=4)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_a_plain_network_has_the_weights_that_mlp_draws():
    expected = mlp(14, (6, 5), 3, torch.Generator().manual_seed(0))
    assert all(torch.equal(a, b) for a, b in zip(build("mlp").parameters(), expected.parameters(), strict=True))


def test_filters_are_uniform_within_their_fan_in():
    network = BarConv(Layout(2, 4, 0), (), 1, torch.Generator().manual_seed(0), filters=200)
    assert 0.49 < network.filters.weight.abs().max() <= 0.5  # fan in 4: ±1/2, whatever the window
    assert network.filters.weight.std().item() == pytest.approx(0.289, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_one_graph_without_breaks(kind):
    torch._dynamo.reset()
    network, obs = build(kind), torch.randn(4, 14, generator=torch.Generator().manual_seed(0))
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(obs), network(obs))
    compiled(obs).sum().backward()
    assert all(p.grad is not None for p in network.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_to_machine_code(kind):
    torch._dynamo.reset()
    network, obs = build(kind), torch.randn(4, 14, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.compile(network, fullgraph=True)(obs), network(obs))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_can_be_given_from_outside(kind):
    network, other = build(kind, seed=0), build(kind, seed=1)
    obs = torch.randn(4, 14, generator=torch.Generator().manual_seed(0))
    assert torch.equal(functional_call(network, dict(other.named_parameters()), (obs,)), other(obs))
    assert not torch.equal(network(obs), other(obs))


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_loads_into_another(kind):
    one, other = build(kind, seed=0), build(kind, seed=1)
    other.load_state_dict(copy.deepcopy(one).state_dict())
    obs = torch.ones(2, 14)
    assert torch.equal(one(obs), other(obs))


def test_costs_by_hand():
    """14 inputs, hidden 6-5, 3 actions. mlp: 14·6 + 6·5 + 5·3 = 129 weights, 14 biases. dueling: one output more. conv: 4·4
    weights used at 3 bars, then 3·4 + 2 = 14 inputs: 14·6 + 30 + 15 = 129."""
    assert (parameter_count(build("mlp")), network_flops(build("mlp"))) == (129 + 14, 258)
    assert (parameter_count(build("dueling")), network_flops(build("dueling"))) == (134 + 15, 268)
    assert FILTERS == 4
    assert (parameter_count(build("conv")), network_flops(build("conv"))) == (16 + 4 + 129 + 14, 2 * (3 * 16 + 129))
    assert network_flops(build("mlp", hidden=())) == 2 * 14 * 3


def test_cost_of_an_update_by_hand():
    """3-5-2, one row: forward 2·15 + 2·10 = 50; backward weights 50, inputs of the second layer 20; three forward passes or
    two."""
    network = mlp(3, (5,), 2)
    assert network_update_flops(network, 1) == 3 * 50 + 50 + 20
    assert network_update_flops(network, 7, double_dqn=False) == 7 * (2 * 50 + 50 + 20)
    assert network_update_flops(mlp(3, (), 2), 1) == 3 * 12 + 12


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("hidden", [(6, 5), ()], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_costs_are_those_that_pytorch_counts_in_an_update(kind, hidden, double):
    config = DQNConfig(network=kind, hidden=hidden, double_dqn=double, batch_size=4)
    online, target = build(kind, hidden=hidden), build(kind, hidden=hidden)
    update = EagerUpdate(online, target, config, for_loop)
    wide, flat = torch.ones(4, 14), torch.ones(4)
    with FlopCounterMode(display=False) as forward:
        online(wide)
    with FlopCounterMode(display=False) as whole:
        update(Transitions(wide, torch.zeros(4, dtype=torch.int64), flat, wide, flat * 0, flat * 0, flat), 1e-3)
    assert 4 * network_flops(online) == forward.get_total_flops()
    assert network_update_flops(online, 4, double) == whole.get_total_flops()
    assert describe_network(config, WINDOWED)["update_flops"] == whole.get_total_flops()


def test_layers_that_are_not_counted_are_refused():
    with pytest.raises(TypeError, match="1 is a LayerNorm: only nn.Linear"):
        network_flops(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LayerNorm(2)))


def test_a_row_of_the_table():
    row = describe_network(DQNConfig(network="dueling", hidden=(6, 5), batch_size=2), WINDOWED)
    assert row == {
        "network": "dueling",
        "hidden": "6-5",
        "parameters": 149,
        "forward_flops": 268,
        "update_flops": 2 * (5 * 268 - 2 * 14 * 6),
    }
    assert describe_network(DQNConfig(hidden=()), WINDOWED)["hidden"] == "none"


def test_conv_without_a_layout_says_what_is_needed():
    with pytest.raises(ConfigError, match=r"network='conv' must know .*Layout\(window, features, own\).*network='mlp'"):
        build("conv", RowSpec(14, 3))


@pytest.mark.parametrize("layout", [Layout(3, 4, 1), Layout(0, 4, 14), Layout(14, 0, 14), Layout(4, 4, -2)])
def test_a_layout_that_does_not_fit_is_refused(layout):
    with pytest.raises(ConfigError, match="and an observation has 14"):
        build("conv", RowSpec(14, 3, layout=layout))
