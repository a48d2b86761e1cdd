"""Reduced precision: clipping after unscaling, skipped steps, settings put back, and a published loop's loss."""

import copy
import warnings

import pytest
import torch

from rlbench.batch import Transitions
from rlbench.config import DQNConfig
from rlbench.experiments.precision import gradient_errors, loss_as_printed, loss_mended
from rlbench.models import mlp
from rlbench.speedups import Choices, precision
from rlbench.speedups.optimizer import for_loop, foreach, fused
from rlbench.updates.eager import EagerUpdate
from rlbench.updates.precision import FLOAT32, Precision

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


class Gradient(torch.nn.Module):
    """q(s, 0) = w · s with 36 weights of 0: with the loss (q - r)² and s = 1 each one's gradient is -2 r, their norm 12 |r|."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(36, 1))

    def forward(self, obs):
        return obs @ self.weight


def batch_with(norm):
    """One row, at the end of an episode, on which a new `Gradient` has a gradient of that norm."""
    one, obs = torch.ones(1), torch.ones(1, 36)
    return Transitions(obs, torch.tensor([0]), one * norm / -12, obs, one, 0 * one, one)


def updater(max_grad_norm=1.0, make_optimizer=for_loop, how=None):
    network = Gradient()
    config = DQNConfig(max_grad_norm=max_grad_norm)
    how = precision.float16_scaled("cpu") if how is None else how
    return EagerUpdate(network, copy.deepcopy(network), config, make_optimizer, how)


@pytest.mark.parametrize(("true", "clipped"), [(3.0, 1.0), (0.5, 0.5)])
def test_clipping_comes_after_unscaling(true, clipped):
    """Case 31: loss scale 65,536, norms 3.0 and 0.5, largest norm 1.0. Clipped before, 1.5e-5 would be left."""
    update = updater()
    assert update.scaler.is_enabled() and update.scaler.get_scale() == 65536.0
    seen = []
    step = update.optimizer.step
    update.optimizer.step = lambda *a, **k: (seen.append(update.parameters[0].grad.norm().item()), step(*a, **k))[1]
    update(batch_with(true), 1e-3)
    assert seen == [pytest.approx(clipped, rel=1e-3)]
    assert int(update.skipped) == 0 and int(update.taken) == 1


@pytest.mark.parametrize("make_optimizer", [for_loop, foreach, fused])
@pytest.mark.parametrize("norm", [1.0, 0.0])
def test_an_infinite_gradient_is_skipped_counted_and_halves_the_scale(make_optimizer, norm):
    update = updater(norm, make_optimizer)
    update(batch_with(1.5), 1e-3)
    (parameter,), state = update.parameters, update.optimizer.state[update.parameters[0]]
    weight, first = parameter.detach().clone(), state["exp_avg"].clone()
    torch.testing.assert_close(weight, torch.full((36, 1), -1e-3))
    for k in range(2):  # a gradient of 3 is beyond float16 at a scale of 65,536 and of 32,768
        update(batch_with(18.0), 1e-3)
        assert torch.equal(parameter, weight) and int(update.skipped) == k + 1
    assert float(state["step"]) == 1.0 and torch.equal(state["exp_avg"], first)  # Adam's own schedule stands still
    assert int(update.taken) == 1 and update.scaler.get_scale() == 16384.0
    update(batch_with(18.0), 1e-3)
    assert (int(update.skipped), int(update.taken)) == (2, 2) and (parameter < weight).all()


@pytest.mark.parametrize("how", [precision.float32, precision.bfloat16])
def test_only_float16_has_a_scaler(how):
    update = updater(how=how("cpu"))
    assert not update.scaler.is_enabled() and update.scaler.get_scale() == 1.0
    update(batch_with(1e6), 1e-3)
    assert update.skipped == 0 and update.taken == 1
    torch.testing.assert_close(update.parameters[0].detach(), torch.full((36, 1), -1e-3))


@pytest.mark.parametrize("how", [precision.bfloat16, precision.float16_scaled])
def test_what_is_kept_is_float32(how):
    generator = torch.Generator().manual_seed(0)
    online, target = (mlp(4, (8,), 2, generator) for _ in range(2))
    seen = []
    online[0].register_forward_hook(lambda module, given, out: seen.append(out.dtype))
    update = EagerUpdate(online, target, DQNConfig(), for_loop, how("cpu"))
    batch = Transitions(
        torch.ones(3, 4), torch.tensor([0, 1, 0]), torch.ones(3), torch.ones(3, 4), *[torch.zeros(3)] * 3
    )
    updated = update(batch, 1e-3)
    assert set(seen) == {how("cpu").autocast}
    assert {t.dtype for t in updated} | {p.dtype for p in online.parameters()} == {torch.float32}
    assert {p.grad.dtype for p in online.parameters()} == {torch.float32}


def settings_now():
    return torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.fp32_precision


@pytest.mark.parametrize("before", ["highest", "high"])
def test_the_setting_is_put_back(before):
    start = settings_now()
    try:
        torch.set_float32_matmul_precision(before)
        kept = settings_now()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with precision.tf32(CUDA).setting():
                assert settings_now() == ("high", "tf32")
            assert settings_now() == kept
            with pytest.raises(KeyError), precision.float32(CUDA).setting():
                assert settings_now()[0] == "highest"
                raise KeyError
            assert settings_now() == kept
            with precision.float32(CPU).setting(), precision.bfloat16(CPU).setting():
                assert settings_now() == kept
    finally:
        torch.set_float32_matmul_precision(start[0])
        torch.backends.cuda.matmul.fp32_precision = start[1]


def test_a_process_that_uses_pytorchs_newer_interface():
    """Once it has been used, the older one refuses to be read."""
    start = settings_now()
    try:
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        with precision.tf32(CUDA).setting():
            assert torch.backends.cuda.matmul.fp32_precision == "tf32"
        assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    finally:
        torch.set_float32_matmul_precision(start[0])
        torch.backends.cuda.matmul.fp32_precision = start[1]


def test_what_combines():
    def reason(variant, device=CPU, **choices):
        return precision.requires(variant, Choices(**choices), None, device, None)

    assert "needs CUDA" in precision.requires("tf32", None, None, CPU, None)
    assert reason("tf32", CUDA) is None and reason("float32", update="native") is None
    for variant in ("bfloat16", "float16_scaled"):
        assert reason(variant) is None and "computes in float32" in reason(variant, update="native")
    for update in ("compiled", "chunked", "cuda_graph"):
        assert reason("bfloat16", update=update) is None and "does not scale" in reason("float16_scaled", update=update)
    assert precision.SPEEDUP.sameness == "statistical"
    for device in ("cpu", "cuda"):
        assert Choices.fast(device).to_dict().get("precision", "float32") == "float32"
    assert Precision() == FLOAT32


def test_the_published_loss_pulls_every_action_and_moves_its_own_target():
    """Claim A12. One row, q = (0, 0) everywhere, r = 1, no end, discount 1: by hand the printed loss is 1 for both actions, and
    its gradients: by the two predictions -1 each, by the target's best action +2; the mended one's -2, by the taken action."""
    network = mlp(1, (), 2)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    target = copy.deepcopy(network)
    one = torch.ones(1)
    batch = Transitions(torch.ones(1, 1), torch.tensor([1]), one, 3 * torch.ones(1, 1), 0 * one, 0 * one, one)
    printed = loss_as_printed(network, batch)
    printed.backward()
    bias = network[0].bias.grad.tolist()
    assert printed.item() == 1.0 and sum(bias) == pytest.approx(0.0)  # -1 - 1 + 2, shared among tied best actions
    assert bias != [0.0, -2.0]
    network.zero_grad()
    mended = loss_mended(network, target, batch)
    mended.backward()
    assert mended.item() == 1.0 and network[0].bias.grad.tolist() == [0.0, -2.0]
    assert network[0].weight.grad.tolist() == [[0.0], [-2.0]] and target[0].weight.grad is None
    with pytest.warns(UserWarning, match="target size"):  # PyTorch itself warns of those shapes
        literal = torch.nn.functional.mse_loss(network(batch.obs), one[:, None])
    assert literal.item() == 1.0


def test_fewer_bits_make_a_larger_error():
    rows = {row["variant"]: row for row in gradient_errors([16], device="cpu", batch_size=32)}
    assert 0 < rows["float32"]["error"] < 1e-5 < rows["float16_scaled"]["error"] < rows["bfloat16"]["error"] < 0.2
    assert "CUDA" in rows["tf32"]["not_measured"] and rows["tf32"]["error"] != rows["tf32"]["error"]
