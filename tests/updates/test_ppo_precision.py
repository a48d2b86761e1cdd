"""PPO under loss scaling: clipped after unscaling, a step of an infinite gradient is skipped, counted and reported."""

import pytest
import torch

from rlbench.actions import pack
from rlbench.batch import Decisions, Evaluated
from rlbench.config import PPOConfig
from rlbench.speedups import SPEEDUPS
from rlbench.updates.ppo_eager import PPOEager
from rlbench.updates.precision import Precision

SCALED = Precision("float16_scaled", "cpu", torch.float16, scaled=True)
ROWS = 4


class Linear(torch.nn.Module):
    """A value that is a slope times 1: with advantages of 0 the loss is its squared error alone."""

    def __init__(self):
        super().__init__()
        self.slope = torch.nn.Parameter(torch.zeros(()))

    def evaluate(self, obs, legal, choice):
        rows = len(choice)
        return Evaluated(torch.zeros(rows), torch.zeros(rows), self.slope.expand(rows))


class Sgd(torch.optim.SGD):
    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)


def batch(target):
    """Of which the gradient with respect to the slope is -target, where vf_coef is 1."""
    zeros = torch.zeros(ROWS)
    return Decisions(
        torch.zeros(ROWS, 1),
        pack([[1]] * ROWS),
        torch.zeros(ROWS, dtype=torch.int64),
        zeros,
        zeros,
        zeros,
        torch.full((ROWS,), float(target)),
    )


def update_of(model, precision=SCALED, make_optimizer=Sgd, **changes):
    settings = {"vf_coef": 1.0, "ent_coef": 0.0, "norm_adv": False, "max_grad_norm": 1.0, **changes}
    return PPOEager(model, PPOConfig(**settings), model, make_optimizer, precision)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("target", "clipped"), [(3.0, 1.0), (0.5, 0.5)])
def test_norms_behind_the_clip_are_those_without_scaling(target, clipped, parts):
    """The handed case: true norms 3.0 and 0.5, largest norm 1.0, scale 65,536; the wrong order leaves 1.5e-5."""
    model = Linear()
    update = update_of(model, gradient_accumulation=parts)
    assert update.scaler.get_scale() == 65_536
    update(batch(target), 1.0)
    assert abs(model.slope.grad.item()) == pytest.approx(clipped, rel=1e-5)
    assert model.slope.item() == pytest.approx(clipped, rel=1e-5) and int(update.skipped) == 0


@pytest.mark.parametrize("make_optimizer", [Sgd, *SPEEDUPS["optimizer"].variants.values()])
@pytest.mark.parametrize("max_grad_norm", [0.0, 1.0])
def test_an_infinite_gradient_is_skipped_counted_and_lowers_the_scale(make_optimizer, max_grad_norm):
    model = Linear()
    update = update_of(model, make_optimizer=make_optimizer, max_grad_norm=max_grad_norm)
    update(batch(1e35), 1e-3)  # 65,536 times its gradient is beyond float32
    assert model.slope.item() == 0 and (int(update.skipped), int(update.taken)) == (1, 0)
    assert update.scaler.get_scale() == 32_768
    update(batch(2.0), 1e-3)
    assert model.slope.item() > 0 and (int(update.skipped), int(update.taken)) == (1, 1)


def test_bfloat16_scales_nothing():
    update = update_of(Linear(), Precision("bfloat16", "cpu", torch.bfloat16))
    assert not update.scaler.is_enabled()
    update(batch(1.0), 1e-3)
    assert update.skipped == 0 and update.taken == 1
