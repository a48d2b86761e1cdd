"""PPO's native update against the eager one, from one state on the same minibatches; an epoch against its minibatches."""

import copy
import resource

import pytest
import torch

from rlbench.actions import ActionError, ActionSets
from rlbench.batch import Decisions, PPOUpdated
from rlbench.config import PPOConfig
from rlbench.evaluations.loop import Loop
from rlbench.evaluations.packed import Packed
from rlbench.models.action_scorer import ActionScorer
from rlbench.speedups.optimizer import for_loop
from rlbench.updates.ppo_eager import PPOEager
from rlbench.updates.ppo_native import PPONative
from rlbench.updates.precision import Precision


def decisions(model, obs_size, rows, most, seed=0, spread=0.3):
    """Rows of which ratios lie around 1, some beyond what is clipped."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(1, most + 1, (rows,), generator=generator)
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    ids = torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),), generator=generator)
    obs, legal = torch.randn(rows, obs_size, generator=generator), ActionSets(ids, offsets)
    choice = (torch.rand(rows, generator=generator) * counts).long()
    with torch.no_grad():
        now = Packed(model).evaluate(obs, legal, choice)
    noise = torch.randn(4, rows, generator=generator)
    return Decisions(
        obs, legal, choice, now.log_prob + spread * noise[0], now.value + noise[1], noise[2], now.value + noise[3]
    )


def rows_of(batch, index):
    return Decisions(*(field.take(index) if isinstance(field, ActionSets) else field[index] for field in batch))


@pytest.mark.parametrize(
    ("obs_size", "hidden", "rows", "most"),
    [
        (128, (64, 64), 300, 20),
        (4, (17, 33), 7, 5),
        (1, (5,), 1, 1),
        (3, (8,), 2, 1400),
        (300, (9,), 130, 3),
        (5, (130, 20), 40, 9),
    ],
)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm_adv": False, "clip_vloss": True, "max_grad_norm": 0.0, "ent_coef": 0.1},
        {"clip_vloss": True, "clip_coef": 0.05, "vf_coef": 2.0, "max_grad_norm": 0.01, "gradient_accumulation": 3},
    ],
)
def test_native_equals_eager(obs_size, hidden, rows, most, settings):
    config = PPOConfig(**settings)
    model = ActionScorer(obs_size, hidden, torch.Generator().manual_seed(1))
    ours, theirs = copy.deepcopy(model), copy.deepcopy(model)
    native = PPONative(ours, config, None, for_loop)
    eager = PPOEager(theirs, config.replace(gradient_accumulation=1), Packed(theirs), for_loop)
    for seed in range(4):
        batch = decisions(model, obs_size, rows, most, seed)
        found, expected = native(batch, 1e-3), eager(batch, 1e-3)
        for name, one, other in zip(PPOUpdated._fields, found, expected, strict=True):
            assert one.shape == () and one.dtype == torch.float32
            torch.testing.assert_close(one, other, rtol=1e-4, atol=3e-6, msg=f"{name}: {one} {other}")
        for (name, one), other in zip(native.shape.views(native.gradient).items(), theirs.parameters(), strict=True):
            norm = float(sum(p.grad.square().sum() for p in theirs.parameters()).sqrt()) + 1e-9
            scale = norm / max(float(native.gradient.norm()), 1e-9)  # eager keeps what was clipped
            torch.testing.assert_close(one * scale / norm, other.grad / norm, rtol=0, atol=3e-5, msg=name)
    # Adam steps by the sign of what is all but 0, where rounding decides: such parameters may be apart by its whole step.
    apart = torch.cat([(a - b).abs().flatten() for a, b in zip(ours.parameters(), theirs.parameters(), strict=True)])
    assert apart.max() <= 8.1e-3 and apart.mean() < 2e-6 and (apart > 1e-5).float().mean() < 0.01
    assert native.taken == eager.taken == 4


def test_first_step_by_hand():
    """One action a state, so that only the value learns. H = 1: h = relu(2 * 1 + 0) = 2, value 3 * 2 + 1 = 7, target 5.

    Loss 0.5 * 0.5 * 4 = 1; by the value 0.5 * 2 = 1; by its weight 2, its bias 1, h 3, so the layer's weight 6, its bias 3.
    """
    model = ActionScorer(1, (1,))
    with torch.no_grad():
        for parameter, number in zip(model.parameters(), (0, 0, 1, 0, 3, 1, 0, 0), strict=True):
            parameter.fill_(number)
    zero = torch.zeros(1)
    batch = Decisions(
        torch.full((1, 1), 2.0),
        ActionSets(torch.tensor([9]), torch.tensor([0, 1])),
        torch.tensor([0]),
        zero,
        zero,
        zero,
        zero + 5,
    )
    native = PPONative(model, PPOConfig(vf_coef=0.5, max_grad_norm=0.0), None, for_loop)
    found = native(batch, 0.1)
    assert [number.item() for number in found] == [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    gradient = {name: view.flatten().tolist() for name, view in native.shape.views(native.gradient).items()}
    assert (gradient["value.weight"], gradient["value.bias"]) == ([2.0], [1.0])
    assert (gradient["state.0.weight"], gradient["state.0.bias"]) == ([6.0], [3.0])
    assert not any(gradient["action"] + gradient["score"] + gradient["join.weight"] + gradient["join.bias"])
    assert model.value.weight.item() == pytest.approx(2.9) and model.state[0].bias.item() == pytest.approx(-0.1)


@pytest.mark.parametrize("sizes", [[64, 64, 64], [1, 300, 17, 129], [7]])
def test_an_epoch_is_its_minibatches_bitwise(sizes):
    model = ActionScorer(10, (20, 33), torch.Generator().manual_seed(1))
    batch = decisions(model, 10, 500, 12)
    order = torch.randperm(500, generator=torch.Generator().manual_seed(2))[: sum(sizes)]
    one, all_at_once, eager = (copy.deepcopy(model) for _ in range(3))
    single, whole = (PPONative(m, PPOConfig(clip_vloss=True), None, for_loop) for m in (one, all_at_once))
    asked = PPOEager(eager, PPOConfig(clip_vloss=True), Packed(eager), for_loop)
    for _ in range(2):
        parts = [rows_of(batch, index) for index in order.split(sizes)]
        expected = [single(part, 1e-4) for part in parts]
        plain = [asked(part, 1e-4) for part in parts]
        found = whole.epoch(batch, order, sizes, 1e-4)
        for k, name in enumerate(PPOUpdated._fields):
            assert found[k].shape == (len(sizes),)
            assert torch.equal(found[k], torch.stack([numbers[k] for numbers in expected])), name
            torch.testing.assert_close(found[k], torch.stack([numbers[k] for numbers in plain]), rtol=1e-3, atol=1e-5)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), all_at_once.parameters(), strict=True))
    assert whole.taken == single.taken == 2 * len(sizes)


def test_ratios_are_one_at_first_and_one_action_teaches_the_policy_nothing():
    model = ActionScorer(6, (12,), torch.Generator().manual_seed(1))
    for path in (Loop, Packed):
        batch = decisions(model, 6, 40, 9)
        with torch.no_grad():
            log_prob = path(model).evaluate(batch.obs, batch.legal, batch.choice).log_prob
        found = PPONative(copy.deepcopy(model), PPOConfig(), None, for_loop)(batch._replace(log_prob=log_prob), 1e-3)
        assert found.ratio_error < 1e-5 and abs(found.approx_kl) < 1e-6 and found.clip_fraction == 0
    native = PPONative(model, PPOConfig(vf_coef=0.0), None, for_loop)
    before = native.parameters.clone()
    found = native(decisions(model, 6, 30, 1, spread=0.0), 1e-2)
    assert found.entropy == 0 and not native.gradient.any() and torch.equal(native.parameters, before)


def test_weights_loaded_in_place_take_effect_and_moved_ones_are_refused():
    model = ActionScorer(6, (12,), torch.Generator().manual_seed(1))
    native = PPONative(model, PPOConfig(), None, for_loop)
    batch, other = decisions(model, 6, 20, 5), ActionScorer(6, (12,), torch.Generator().manual_seed(2))
    model.load_state_dict(other.state_dict())
    fresh = PPONative(other, PPOConfig(), None, for_loop)
    assert all(torch.equal(a, b) for a, b in zip(native(batch, 1e-3), fresh(batch, 1e-3), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    model.load_state_dict({name: value.clone() for name, value in other.state_dict().items()}, assign=True)
    with pytest.raises(TypeError, match="moved out of the memory"):
        native(batch, 1e-3)


def test_what_is_not_a_number_is_not_hidden_and_does_not_stay():
    model = ActionScorer(6, (5,), torch.Generator().manual_seed(1))
    good = copy.deepcopy(model.state_dict())
    batch = decisions(model, 6, 20, 5)
    for settings in ({}, {"max_grad_norm": 0.0}):
        native = PPONative(model, PPOConfig(**settings), None, for_loop)
        bad = batch.obs.clone()
        bad[3, 2] = float("nan")
        found = native(batch._replace(obs=bad), 1e-3)
        assert found.loss.isnan() and found.ratio_error.isnan()
        assert all(parameter.isnan().any() for parameter in model.parameters())
        model.load_state_dict(good)
        with torch.no_grad():
            now = Packed(model).evaluate(batch.obs, batch.legal, batch.choice)
        native.moment1.nan_to_num_(0), native.moment2.nan_to_num_(0)
        found = native(batch._replace(log_prob=now.log_prob), 0.0)
        assert found.loss.isfinite() and found.ratio_error < 1e-5  # no NaN was left between the rows
        model.load_state_dict(good)


def test_padding_stays_zero():
    model = ActionScorer(6, (5, 18), torch.Generator().manual_seed(1))
    native = PPONative(model, PPOConfig(), None, for_loop)
    for seed in range(20):
        native(decisions(model, 6, 50, 9, seed), 1e-2)
    used = sum(parameter.numel() for parameter in model.parameters())
    for vector in (native.parameters, native.moment1, native.moment2):
        inside = sum(int((view != 0).sum()) for view in native.shape.views(vector).values())
        assert int((vector != 0).sum()) == inside <= used


def test_what_is_refused():
    model = ActionScorer(6, (5,), torch.Generator().manual_seed(1))
    native = PPONative(model, PPOConfig(), None, for_loop)
    batch = decisions(model, 6, 20, 5)
    before = native.parameters.clone()
    for bad in (torch.tensor([0, 1, 20]), torch.tensor([0, -1, 2])):
        with pytest.raises(ActionError, match="accepted: rows 0 to 19"):
            native.epoch(batch, bad, [3], 1e-3)
    with pytest.raises(ActionError, match="order"):
        native.epoch(batch, torch.arange(3), [2], 1e-3)
    with pytest.raises(ActionError, match=r"minibatches of \[3, 0\] rows"):
        native.epoch(batch, torch.arange(3), [3, 0], 1e-3)
    with pytest.raises(ActionError, match="minibatches of .-1, 4"):
        native.epoch(batch, torch.arange(3), [-1, 4], 1e-3)
    with pytest.raises(ActionError, match="state 2 has"):
        native(batch._replace(choice=batch.choice + 100 * (torch.arange(20) == 2)), 1e-3)
    for name in ("log_prob", "value", "advantage", "target"):
        for wrong in (getattr(batch, name)[:-1], getattr(batch, name).double(), getattr(batch, name)[:, None]):
            with pytest.raises(ActionError, match=name):
                native(batch._replace(**{name: wrong}), 1e-3)
    with pytest.raises(ActionError, match="packed sets"):
        native(batch._replace(legal=None), 1e-3)
    assert torch.equal(native.parameters, before) and native.taken == 0
    with pytest.raises(TypeError, match="float32, not in bfloat16"):
        PPONative(model, PPOConfig(), None, for_loop, Precision("bfloat16", autocast=torch.bfloat16))
    with pytest.raises(TypeError, match="not a Linear"):
        PPONative(torch.nn.Linear(2, 2), PPOConfig(), None, for_loop)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(native)


def test_memory_is_flat_over_many_updates():
    model = ActionScorer(6, (5,), torch.Generator().manual_seed(1))
    native = PPONative(model, PPOConfig(), None, for_loop)
    batch, order = decisions(model, 6, 60, 5), torch.arange(60)
    for _ in range(200):
        native.epoch(batch, order, [20, 40], 1e-4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3000):
        native.epoch(batch, order, [20, 40], 1e-4)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048  # KiB
