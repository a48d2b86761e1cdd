"""The native update against the eager one, from one state on the same minibatches, over odd shapes and settings."""

import copy

import pytest
import torch

from rlbench.batch import Transitions
from rlbench.buffers import RingTorch, RowSpec
from rlbench.config import DQNConfig
from rlbench.models import mlp
from rlbench.native.dqn import NativeUpdate, flatten, linears, padded
from rlbench.speedups.conversion import StackOnce
from rlbench.speedups.optimizer import for_loop
from rlbench.speedups.replay import random_transitions
from rlbench.speedups.update import EagerUpdate, Native


def batches(spec, rows, count):
    return [StackOnce()(random_transitions(rows, spec, seed)) for seed in range(count)]


@pytest.mark.parametrize(
    ("obs_size", "hidden", "actions", "rows"),
    [
        (16, (64, 64), 3, 32),
        (4, (120, 84), 2, 128),
        (1, (), 1, 1),
        (3, (1,), 2, 1),
        (5, (17, 33, 16), 4, 7),
        (300, (31,), 19, 9),  # an inner dimension walked in two parts
        (2, (300,), 3, 300),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("double", "huber", "norm"), [(True, True, 0.5), (False, False, 0.0), (True, False, 10.0)])
def test_native_equals_eager(obs_size, hidden, actions, rows, masked, double, huber, norm):
    spec = RowSpec(obs_size, actions, masked)
    config = DQNConfig(double_dqn=double, huber=huber, max_grad_norm=norm)
    nets = [mlp(obs_size, hidden, actions, torch.Generator().manual_seed(k)) for k in (0, 1)]
    ours, theirs = ([copy.deepcopy(net) for net in nets] for _ in range(2))
    native, eager = Native(*ours, config, for_loop), EagerUpdate(*theirs, config, for_loop)
    for batch in batches(spec, rows, 6):
        (loss, targets, errors), (expected, expected_targets, expected_errors) = native(batch, 1e-3), eager(batch, 1e-3)
        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(targets, expected_targets, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(errors, expected_errors, rtol=1e-5, atol=1e-5)
    for one, other in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-5)
    for one, other in zip(ours[1].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(one, other)  # the target network is read alone


def test_first_step_by_hand():
    """One weight w = 2, no bias, no hidden layer; x = 3, r = 1, the end: loss (6 - 1)^2 = 25, gradients 30 and 10.

    Adam's first step is the step size in the gradient's direction.
    """
    net, target = mlp(1, (), 1), mlp(1, (), 1)
    with torch.no_grad():
        net[0].weight.fill_(2.0)
        net[0].bias.fill_(0.0)
    update = NativeUpdate(net, target, double_dqn=True, huber=False, max_grad_norm=0.0, eps=1e-8)
    one, end = torch.ones(1), torch.ones(1)
    batch = Transitions(torch.tensor([[3.0]]), torch.tensor([0]), one, torch.tensor([[9.0]]), end, 0 * one, one)
    loss, targets, errors = update(batch, 0.1)
    assert loss.item() == 25.0 and targets.tolist() == [1.0] and errors.tolist() == [5.0]
    rows = update.gradient.view(2, padded(1))
    assert rows[:, 0].tolist() == [30.0, 10.0] and not rows[:, 1:].any()
    assert net[0].weight.item() == pytest.approx(1.9) and net[0].bias.item() == pytest.approx(-0.1)


def test_packed_rows_and_another_batch_size():
    """A replay of packed rows hands out views with strides; the last minibatch may be of another size."""
    spec = RowSpec(5, 3, masked=True)
    ring = RingTorch(spec, 64)
    ring.add(random_transitions(64, spec, 0))
    nets = [mlp(5, (8,), 3, torch.Generator().manual_seed(k)) for k in (0, 1)]
    pairs = []
    for packed in (True, False):
        copies = [copy.deepcopy(net) for net in nets]
        update = Native(*copies, DQNConfig(), for_loop)
        for rows in (16, 3, 16):
            batch = ring.sample(torch.arange(rows).numpy())
            assert not batch.obs.is_contiguous()
            update(batch if packed else Transitions(*(None if t is None else t.contiguous() for t in batch)), 1e-3)
        pairs.append(list(copies[0].parameters()))
    assert all(torch.equal(a, b) for a, b in zip(*pairs, strict=True))


def test_padding_stays_zero():
    net, target = mlp(3, (5,), 2), mlp(3, (5,), 2)
    update = Native(net, target, DQNConfig(), for_loop)
    for batch in batches(RowSpec(3, 2), 8, 20):
        update(batch, 1e-2)
    used = sum(p.numel() for p in net.parameters())
    assert int((update.online != 0).sum()) <= used and update.online.numel() == 4 * 16 + 6 * 16
    assert update.online.view(-1, 16)[:4, 5:].eq(0).all() and update.online.view(-1, 16)[4:, 2:].eq(0).all()


def test_what_is_not_a_number_is_not_hidden():
    net, target = mlp(3, (5,), 2), mlp(3, (5,), 2)
    update = Native(net, target, DQNConfig(), for_loop)
    (batch,) = batches(RowSpec(3, 2), 4, 1)
    loss, *_ = update(batch._replace(obs=batch.obs * float("nan")), 1e-3)
    assert loss.isnan() and all(p.isnan().any() for p in net.parameters())


def test_flat_storage_is_the_networks_own():
    net = mlp(3, (5,), 2, torch.Generator().manual_seed(0))
    before = [p.detach().clone() for p in net.parameters()]
    x = torch.randn(4, 3)
    expected = net(x)
    storage = flatten(linears(net))
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), before, strict=True))
    torch.testing.assert_close(net(x), expected)
    storage.zero_()
    assert not net(x).any()


def test_networks_it_does_not_take():
    assert linears(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))) is None
    assert linears(torch.nn.Linear(2, 2)) is None
    assert linears(mlp(2, (2,), 1).double()) is None
    assert linears(torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))) is None
    with pytest.raises(TypeError, match="Linear and ReLU"):
        NativeUpdate(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), True, True, 0.0, 1e-8)


def test_memory_is_flat_over_many_updates():
    import resource

    net, target = mlp(16, (64, 64), 3), mlp(16, (64, 64), 3)
    update = Native(net, target, DQNConfig(), for_loop)
    (batch,) = batches(RowSpec(16, 3), 32, 1)
    for _ in range(1000):
        update(batch, 1e-3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10_000):
        update(batch, 1e-3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048  # KiB
