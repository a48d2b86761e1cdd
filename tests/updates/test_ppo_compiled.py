"""The compiled update of PPO is the eager one, over several updates and every setting, in few compilations."""

import copy
import itertools

import pytest
import torch

from rlbench import compile as compiling
from rlbench.actions import ActionSets
from rlbench.batch import Decisions, Evaluated
from rlbench.compile import why_not
from rlbench.config import PPOConfig
from rlbench.evaluations.compiled import PackedCompiled, forget_compiled
from rlbench.evaluations.dense import Dense
from rlbench.evaluations.loop import Loop
from rlbench.evaluations.packed import Packed
from rlbench.losses import normalised, ppo_loss
from rlbench.models.action_scorer import ActionScorer
from rlbench.models.actor_critic import ActorCritic
from rlbench.speedups.optimizer import for_loop
from rlbench.updates.ppo_compiled import PPOCompiled
from rlbench.updates.ppo_eager import PPOEager
from rlbench.updates.ppo_functional import PPOSettings, normalised_real, on_bucket, padded_loss
from rlbench.updates.ppo_parts import joined, parts_of
from rlbench.updates.precision import Precision

NEEDS_COMPILER = pytest.mark.skipif(why_not("cpu") is not None, reason=str(why_not("cpu")))
FEATURES, ACTIONS = 5, 4
CASE_27 = [1, 3, 3, 64, 2, 1]


@pytest.fixture(autouse=True)
def traced_alone(request, monkeypatch):
    """What is compiled here is traced and run by PyTorch, which takes a second, but in the slow tests."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(compiling, "BACKEND", "eager")
    forget_compiled()
    yield
    forget_compiled()


def scorer(seed=0):
    return ActionScorer(FEATURES, (8, 6), torch.Generator().manual_seed(seed))


def dense(seed=0):
    return ActorCritic(FEATURES, (8, 6), ACTIONS, torch.Generator().manual_seed(seed))


def batch_of(counts, seed=0, legal="sets"):
    """A minibatch whose old log-probabilities are near those of a new policy."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.as_tensor(counts)
    rows = len(counts)
    choice = (torch.rand(rows, generator=generator) * counts).long()
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    ids = torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),), generator=generator)
    mask = torch.arange(ACTIONS) < counts[:, None]
    obs = torch.randn(rows, FEATURES, generator=generator)
    log_prob, *others = (torch.randn(rows, generator=generator) for _ in range(4))
    log_prob = torch.where(counts > 1, 0.2 * log_prob - counts.log(), 0.0)
    return Decisions(
        obs, {"sets": ActionSets(ids, offsets), "mask": mask, "all": None}[legal], choice, log_prob, *others
    )


def assert_learnt_the_same(update, eager, ours, theirs):
    """Adam's means of gradients and of their squares agree; and so do the parameters, but for few: where a gradient is nothing
    but rounding, Adam may move a parameter by a step all the same.
    """
    state = [eager.optimizer.state[parameter] for parameter in theirs.parameters()]
    for moment, name in ((update.moments.first, "exp_avg"), (update.moments.second, "exp_avg_sq")):
        for one, other in zip(update.network.views(moment).values(), state, strict=True):
            scale = max(1e-4, other[name].abs().max())
            torch.testing.assert_close(one / scale, other[name] / scale, rtol=1e-3, atol=1e-3)
    one, other = (torch.cat([p.detach().reshape(-1) for p in model.parameters()]) for model in (ours, theirs))
    assert ((one - other).abs() > 2e-5).float().mean() <= 0.05 and (one - other).abs().max() < 5e-3


def assert_updates_agree(config, batches, model=None, evaluator=Packed, precision=None, tolerance=1e-5):
    """Both updates on the same minibatches: the numbers of each, and the parameters in the end."""
    ours, theirs = (copy.deepcopy(model or scorer()) for _ in range(2))
    given = () if precision is None else (precision,)
    update = PPOCompiled(ours, config, evaluator(ours), for_loop, *given)
    eager = PPOEager(theirs, config, evaluator(theirs), for_loop, *given)
    for k, batch in enumerate(batches):
        rate = 1e-3 / (k + 1)
        for one, other in zip(update(batch, rate), eager(batch, rate), strict=True):
            assert one.shape == () and not one.requires_grad
            torch.testing.assert_close(one, other, rtol=10 * tolerance, atol=tolerance)
    assert_learnt_the_same(update, eager, ours, theirs)
    assert update.recompiles == 0 and update.taken == eager.taken == len(batches) and update.skipped == 0
    return update


@pytest.mark.parametrize(
    ("norm_adv", "clip_vloss", "parts"), list(itertools.product((True, False), (True, False), (1, 3)))
)
def test_every_setting_agrees_with_eager(norm_adv, clip_vloss, parts):
    config = PPOConfig(norm_adv=norm_adv, clip_vloss=clip_vloss, gradient_accumulation=parts, hidden=(8, 6))
    counts = [1, 2, 5, 9, 1, 3, 4, 10, 7, 2, 1, 1, 2, 3, 1, 1, 2, 4]
    batches = [batch_of(counts[: 18 - k % 2], seed=k) for k in range(4)]
    if parts > 1:  # the eager update of the whole is what parts must add up to
        whole = config.replace(gradient_accumulation=1)
        ours, theirs = scorer(), scorer()
        update, eager = PPOCompiled(ours, config, None, for_loop), PPOEager(theirs, whole, Packed(theirs), for_loop)
        for batch in batches:
            for one, other in zip(update(batch, 1e-3), eager(batch, 1e-3), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        assert_learnt_the_same(update, eager, ours, theirs)
        assert update.recompiles == 0 and len(update.functions.used) == 2  # a part's gradient, and the step
    else:
        assert_updates_agree(config, batches)


@pytest.mark.parametrize("counts", [[1], [7], [1, 1, 1, 1], CASE_27, [1400, 2, 1]], ids=lambda c: f"{len(c)}-{max(c)}")
def test_odd_minibatches_agree_with_eager(counts):
    assert_updates_agree(PPOConfig(hidden=(8, 6), clip_vloss=True), [batch_of(counts, seed=k) for k in range(3)])


@pytest.mark.parametrize("legal", ["mask", "all"])
@pytest.mark.parametrize(("rows", "parts"), [(1, 1), (17, 1), (17, 2)])
def test_policies_over_a_fixed_number_of_actions(legal, rows, parts):
    counts = [1 + k % ACTIONS for k in range(rows)] if legal == "mask" else [ACTIONS] * rows
    batches = [batch_of(counts, k, legal) for k in range(3)]
    assert_updates_agree(PPOConfig(hidden=(8, 6), gradient_accumulation=parts), batches, dense(), Dense)


def test_no_clipping_and_long_gradients():
    batches = [batch_of([3, 4, 5], seed=k) for k in range(3)]
    assert_updates_agree(PPOConfig(max_grad_norm=0.0, hidden=(8, 6)), batches)
    long = [batch._replace(target=100 * batch.target) for batch in batches]
    assert_updates_agree(PPOConfig(max_grad_norm=0.5, hidden=(8, 6)), long)


def test_the_first_ratio_is_one():
    """Case 27: log-probabilities of any evaluator, stored at collection, against those of the compiled update."""
    for counts, acting in itertools.product((CASE_27, CASE_27[::-1], [1]), (Loop, Packed, PackedCompiled)):
        model, batch = scorer(), batch_of(counts)
        with torch.no_grad():
            batch = batch._replace(log_prob=acting(model).evaluate(batch.obs, batch.legal, batch.choice).log_prob)
        updated = PPOCompiled(model, PPOConfig(hidden=(8, 6)), acting(model), for_loop)(batch, 1e-3)
        assert updated.ratio_error < 1e-5 and abs(updated.approx_kl) < 1e-9 and updated.clip_fraction == 0


def test_the_first_ratio_under_bfloat16():
    model, batch, low = scorer(), batch_of(CASE_27), Precision("bfloat16", "cpu", torch.bfloat16)
    with torch.no_grad(), low.forward():
        then = Packed(model).evaluate(batch.obs, batch.legal, batch.choice).log_prob
    batch = batch._replace(log_prob=then)
    updated = PPOCompiled(model, PPOConfig(hidden=(8, 6)), Packed(model), for_loop, low)(batch, 1e-3)
    assert updated.ratio_error < 2e-2 and updated.loss.dtype == torch.float32
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


def test_losses_are_not_scaled():
    with pytest.raises(TypeError, match="does not scale losses; float16_scaled needs PPOEager"):
        PPOCompiled(
            scorer(), PPOConfig(), None, for_loop, Precision("float16_scaled", "cpu", torch.float16, scaled=True)
        )


def test_compilations_are_few_as_counts_and_rows_change():
    model = scorer()
    update, kept, copies = PPOCompiled(model, PPOConfig(hidden=(8, 6)), None, for_loop), [], []
    generator = torch.Generator().manual_seed(1)
    for seed in range(40):
        counts = torch.randint(1, 9, (31 + seed % 2,), generator=generator)  # minibatches differ by one row
        kept.append(update(batch_of(counts, seed), 1e-3 * (1 - seed / 40)))
        copies.append([t.clone() for t in kept[-1]])
    assert update.recompiles == 0 and len(update.functions.used) <= 4  # totals about 140, of 112, 128, 160 and 192
    assert all(torch.equal(a, b) for u, c in zip(kept, copies, strict=True) for a, b in zip(u, c, strict=True))


def test_equal_trainers_share_what_was_compiled_and_loaded_weights_take_effect():
    config, batch = PPOConfig(hidden=(8, 6)), batch_of([2, 3])
    first, second = (PPOCompiled(scorer(), config, None, for_loop) for _ in range(2))
    first(batch, 1e-3)
    second(batch, 1e-3)
    assert first.build_s > 0 == second.build_s and second.recompiles == 0
    other = PPOCompiled(scorer(), config.replace(clip_coef=0.1), None, for_loop)
    other(batch, 1e-3)
    assert other.build_s > 0
    model, theirs = scorer(), scorer(seed=1)
    update = PPOCompiled(model, config, None, for_loop)
    update(batch, 0.0)
    model.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(
        update(batch, 0.0).loss, PPOEager(theirs, config, Packed(theirs), for_loop)(batch, 0.0).loss
    )
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(update)


@pytest.mark.parametrize("rows", [1, 2, 17, 31])
def test_rows_that_fill_up_add_nothing(rows):
    """To the loss or its gradient, against the loss of the rows that are there."""
    generator = torch.Generator().manual_seed(rows)
    batch = batch_of([1 + k % 5 for k in range(rows)], seed=2)
    parts = [torch.randn(40, generator=generator).requires_grad_() for _ in range(3)]
    config = PPOConfig(clip_vloss=True)
    padded = on_bucket(batch)
    size = len(padded.choice)
    ours = padded_loss(
        Evaluated(*(part[:size] for part in parts)), padded, torch.tensor(float(rows)), PPOSettings.of(config)
    )
    theirs = ppo_loss(Evaluated(*(part[:rows] for part in parts)), batch, 0.2, 0.01, 0.5, clip_vloss=True)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    found, expected = (torch.autograd.grad(updated.loss, parts) for updated in (ours, theirs))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def test_advantages_are_normalised_over_what_is_there():
    """By hand: 1 and 3 have mean 2 and a standard deviation of the square root of 2."""
    given, real = torch.tensor([1.0, 3.0, 0.0]), torch.tensor([True, True, False])
    expected = torch.tensor([-(0.5**0.5), 0.5**0.5, 0.0])
    torch.testing.assert_close(normalised_real(given, real, torch.tensor(2.0)), expected)
    one = torch.tensor([4.0, 0.0])
    assert normalised_real(one, torch.tensor([True, False]), torch.tensor(1.0)).tolist() == [4.0, 0.0]
    wide = torch.randn(50, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(normalised_real(wide, torch.ones(50) > 0, torch.tensor(50.0)), normalised(wide))


def test_parts_by_hand():
    config = PPOConfig(gradient_accumulation=3, norm_adv=False)
    batch = batch_of([2, 1, 3, 1])
    parts = parts_of(batch, config)
    assert [share for _, share in parts] == [0.25, 0.25, 0.5]
    assert [part.legal.offsets.tolist() for part, _ in parts] == [[0, 2], [0, 1], [0, 3, 4]]
    assert torch.equal(torch.cat([part.legal.ids for part, _ in parts]), batch.legal.ids)
    assert torch.equal(torch.cat([part.obs for part, _ in parts]), batch.obs)
    assert len(parts_of(batch_of([2]), config)) == 1 and len(parts_of(batch_of([2, 2]), config)) == 2
    whole = parts_of(batch, config.replace(norm_adv=True))
    torch.testing.assert_close(torch.cat([part.advantage for part, _ in whole]), normalised(batch.advantage))
    numbers = [padded_loss(Evaluated(*[torch.zeros(1)] * 3), on_bucket(part), torch.tensor(1.0), PPOSettings.of(config))
               for part, _ in parts[:2]]  # fmt: skip
    both = joined(numbers, [0.25, 0.75])
    torch.testing.assert_close(both.value_loss, 0.25 * numbers[0].value_loss + 0.75 * numbers[1].value_loss)
    assert both.ratio_error == max(n.ratio_error for n in numbers)


@pytest.mark.slow
@NEEDS_COMPILER
def test_compiled_updates_agree_with_eager():
    config = PPOConfig(hidden=(8, 6), clip_vloss=True)
    for counts in (CASE_27, [1], [1, 1, 1, 1]):
        assert_updates_agree(config, [batch_of(counts, seed=k) for k in range(4)], tolerance=2e-5)
    assert_updates_agree(config, [batch_of([1, 2, 3, 4, 1], k, "mask") for k in range(4)], dense(), Dense)
    parts = config.replace(gradient_accumulation=3)
    ours, theirs = scorer(), scorer()
    update, eager = PPOCompiled(ours, parts, None, for_loop), PPOEager(theirs, config, Packed(theirs), for_loop)
    for k in range(3):
        batch = batch_of([3, 1, 4, 1, 5, 9, 2], seed=k)
        for one, other in zip(update(batch, 1e-3), eager(batch, 1e-3), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.parametrize("autocast", [False, True])
def test_the_first_ratio_is_one_compiled(autocast):
    low = Precision("bfloat16", "cpu", torch.bfloat16) if autocast else Precision()
    for acting in (Loop, Packed, PackedCompiled):
        model, batch = scorer(), batch_of(CASE_27)
        with torch.no_grad(), low.forward():
            batch = batch._replace(log_prob=acting(model).evaluate(batch.obs, batch.legal, batch.choice).log_prob)
        updated = PPOCompiled(model, PPOConfig(hidden=(8, 6)), None, for_loop, low)(batch, 1e-3)
        assert updated.ratio_error < (2e-2 if autocast else 1e-5)
