"""The slot `ppo_update`: its variants agree, planted faults are noticed, and each says what it needs."""

from types import SimpleNamespace

import pytest
import torch

from rlbench import compile as compiling
from rlbench.compile import why_not
from rlbench.config import PPOConfig
from rlbench.evaluations.compiled import forget_compiled
from rlbench.losses import ppo_loss
from rlbench.speedups import ppo_update
from rlbench.speedups.ppo_update import SPEEDUP
from rlbench.updates.ppo_eager import PPOEager

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
NATIVE = SPEEDUP.requires("native", None, None, CPU, None)
NEEDS_COMPILER = pytest.mark.skipif(why_not("cpu") is not None, reason=str(why_not("cpu")))


@pytest.fixture(autouse=True)
def traced_alone(request, monkeypatch):
    """What is compiled here is traced and run by PyTorch, which takes a second, but in the slow tests."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(compiling, "BACKEND", "eager")
    yield
    forget_compiled()


def outcome(variant, size, seed):
    return SPEEDUP.exercise(SPEEDUP.variants[variant], SPEEDUP.make_inputs(size, seed, "cpu"))


@pytest.mark.parametrize("size", [1, 33])
def test_compiled_agrees_traced(size):
    SPEEDUP.check(outcome("eager", size, 0), outcome("compiled", size, 0))


@pytest.mark.skipif(NATIVE is not None, reason=str(NATIVE))
@pytest.mark.parametrize("size", [1, 2, 33, 64])
def test_native_agrees(size):
    for seed in range(4):
        SPEEDUP.check(outcome("eager", size, seed), outcome("native", size, seed))


@pytest.mark.slow
@NEEDS_COMPILER
def test_compiled_agrees():
    for size in (1, 33, 512):
        SPEEDUP.check(outcome("eager", size, 0), outcome("compiled", size, 0))


@pytest.mark.parametrize("change", [{"ent_coef": 0.0}, {"vf_coef": 0.4}, {"clip_coef": 0.1}, {"norm_adv": False}])
def test_another_loss_is_noticed(monkeypatch, change):
    expected = outcome("eager", 64, 0)

    def other(now, batch, clip_coef, ent_coef, vf_coef, norm_adv=True, clip_vloss=False):
        given = {"clip_coef": clip_coef, "ent_coef": ent_coef, "vf_coef": vf_coef, "norm_adv": norm_adv}
        return ppo_loss(now, batch, **{**given, **change}, clip_vloss=clip_vloss)

    monkeypatch.setattr("rlbench.updates.ppo_eager.ppo_loss", other)
    with pytest.raises(AssertionError):
        SPEEDUP.check(expected, outcome("eager", 64, 0))


def test_another_step_is_noticed(monkeypatch):
    expected, step = outcome("eager", 64, 0), PPOEager.step
    monkeypatch.setattr(PPOEager, "step", lambda self, rate: step(self, 0.9 * rate))
    with pytest.raises(AssertionError, match="of a step"):
        SPEEDUP.check(expected, outcome("eager", 64, 0))


def test_later_calls_go_on_learning():
    call = SPEEDUP.bind(PPOEager, SPEEDUP.make_inputs(8, 0, "cpu"))
    first, second = call(), call()
    assert (first[-1] - second[-1]).abs().max() > 1e-4


def test_inputs_have_all_kinds_of_states():
    model, batches = SPEEDUP.make_inputs(512, 0, "cpu")
    counts = torch.cat([batch.legal.counts for batch in batches])
    assert counts.min() == 1 and counts.max() == 20 and (batches[0].legal.ids < 0).any()
    assert all((batch.choice < batch.legal.counts).all() for batch in batches) and model.state[0].in_features == 128


def choices(**variants):
    return SimpleNamespace(**{"precision": "float32", **variants})


def reason(variant, chosen=None, config=None, device=CPU, env=None):
    return SPEEDUP.requires(variant, chosen, config, device, env)


def test_what_variants_need(monkeypatch):
    game, plain = SimpleNamespace(game=object()), SimpleNamespace(game=None)
    assert reason("eager", choices(precision="float16_scaled"), PPOConfig(), CUDA, plain) is None
    monkeypatch.setattr(ppo_update, "why_not", lambda kind: None)
    monkeypatch.setattr("rlbench.native.policy.library", lambda name: None)
    assert reason("compiled", choices(precision="bfloat16"), PPOConfig(gradient_accumulation=3), CUDA, plain) is None
    assert "does not scale losses" in reason("compiled", choices(precision="float16_scaled"))
    assert reason("native", choices(), PPOConfig(), CPU, game) is None and reason("native") is None
    assert "runs on cuda; accepted here: eager, compiled" in reason("native", device=CUDA)
    expected = "native code updates policies over sets of actions; accepted here: eager, compiled"
    assert reason("native", env=plain) == expected
    assert "float32, not in bfloat16" in reason("native", choices(precision="bfloat16"))
    assert "hidden has 17" in reason("native", config=PPOConfig(hidden=(4,) * 17))
    assert reason("native", config=PPOConfig(gradient_accumulation=2)) is None  # it goes through any minibatch in parts


def test_without_a_compiler_there_is_a_reason(monkeypatch):
    monkeypatch.setattr(ppo_update, "why_not", lambda kind: "torch.compile needs a C++ compiler: install one")
    monkeypatch.setattr(ppo_update, "why_no_policy", lambda **given: "there is no C compiler: install gcc")
    assert reason("compiled") == "torch.compile needs a C++ compiler: install one; accepted here: eager"
    assert reason("native").startswith("there is no C compiler: install gcc")
