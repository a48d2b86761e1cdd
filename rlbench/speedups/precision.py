"""Precision: what arithmetic the products of an update are done in.

A GPU's tensor cores multiply in TF32, bfloat16 or float16 many times as fast as in float32, with 11, 8 and 11 bits of precision
instead of 24 (claims A11, B6). Small networks gain nothing: their time is in calls, and each cast is one more. bfloat16 has
float32's range; float16 ends at 65,504 and loses gradients below 6e-8, so that losses are scaled up before backward, gradients
down again before they are clipped, and a step with an infinite gradient is skipped (`skipped`) while the scale is lowered.
Parameters, gradients, targets and Adam stay in float32. What is learnt may differ: judge it by returns, over seeds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.config import DQNConfig
from rlbench.models import mlp
from rlbench.speedups.optimizer import for_loop
from rlbench.speedups.speedup import Speedup
from rlbench.updates.eager import EagerUpdate
from rlbench.updates.precision import Precision


def float32(device: str | torch.device) -> Precision:
    """IEEE float32, also where the process allows TF32."""
    kind = torch.device(device).type
    return Precision("float32", kind, matmul="highest" if kind == "cuda" else None)


def tf32(device: str | torch.device) -> Precision:
    """Float32 tensors, whose products round their inputs to 11 bits (TF32) on tensor cores."""
    return Precision("tf32", torch.device(device).type, matmul="high")


def bfloat16(device: str | torch.device) -> Precision:
    """`torch.autocast` to bfloat16: float32's range, 8 bits; nothing to scale."""
    return Precision("bfloat16", torch.device(device).type, autocast=torch.bfloat16)


def float16_scaled(device: str | torch.device) -> Precision:
    """`torch.autocast` to float16 with `torch.amp.GradScaler`."""
    return Precision("float16_scaled", torch.device(device).type, autocast=torch.float16, scaled=True)


VARIANTS = {"float32": float32, "tf32": tf32, "bfloat16": bfloat16, "float16_scaled": float16_scaled}
UPDATES = 2
RATE = 1e-5
BATCH = 128  # rows


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """Two 16-size-size-3 networks and minibatches of 128 rows, small enough that no scaled gradient is infinite."""
    generator = torch.Generator().manual_seed(seed)
    online, target = (mlp(16, (size, size), 3, generator).to(device) for _ in range(2))

    def batch() -> Transitions:
        wide = [0.1 * torch.randn((BATCH, 16), generator=generator) for _ in range(2)]
        action, reward = (
            torch.randint(0, 3, (BATCH,), generator=generator),
            0.1 * torch.randn(BATCH, generator=generator),
        )
        fields = (wide[0], action, reward, wide[1], torch.zeros(BATCH), torch.zeros(BATCH), torch.full((BATCH,), 0.99))
        return Transitions(*(field.to(device) for field in fields))

    return online, target, [batch() for _ in range(UPDATES)], device


def bind(variant: Callable[..., Precision], inputs: tuple) -> Callable[[], list[Tensor]]:
    """The call does a few eager updates and hands out how far each parameter has moved."""
    online, target, batches, device = inputs
    precision, online = variant(device), copy.deepcopy(online)
    before = [parameter.detach().clone() for parameter in online.parameters()]
    update = EagerUpdate(online, target, DQNConfig(), for_loop, precision)

    def updates() -> list[Tensor]:
        with precision.setting():
            for batch in batches:
                update(batch, RATE)
        return [parameter.detach() - start for parameter, start in zip(online.parameters(), before, strict=True)]

    return updates


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """On the whole the same direction and length: what all parameters moved differs by at most a third of its length."""
    one, other = (torch.cat([part.reshape(-1) for part in parts]) for parts in (expected, actual))
    assert other.isfinite().all(), "not all parameters are finite"
    share = float((other - one).norm() / one.norm())
    assert share <= 1 / 3, f"the parameters' movement differs by {share:.0%} of its length; accepted is a third"


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant == "tf32" and device.type != "cuda":
        return f"TF32 needs CUDA, and this runs on {device.type}; accepted here: float32, bfloat16, float16_scaled"
    if choices is None or variant == "float32":
        return None
    slot = "ppo_update" if getattr(config, "trainer", "dqn") == "ppo" else "update"
    update = getattr(choices, slot)
    if update == "native":
        return f"{slot}='native' computes in float32; accepted with it: float32; with {variant}: {slot}='eager'"
    if variant == "float16_scaled" and update != "eager":
        return f"{slot}={update!r} does not scale losses; accepted with it: float32, bfloat16; here: {slot}='eager'"
    return None


SPEEDUP = Speedup(
    name="precision",
    question="Do fewer bits make an update faster?",
    summary="Products in fewer bits. Matters for wide networks on a GPU; casts cost time on small ones.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="statistical",
    sizes=(64, 256, 1024),
    size_means="width of two hidden layers",
    workloads=("dqn", "ppo"),
    claims=("A11", "A12", "B6"),
)
