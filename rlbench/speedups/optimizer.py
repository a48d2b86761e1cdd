"""Optimizer: how Adam walks over the parameters.

A small network has half a dozen small parameter tensors. The loop does a dozen operations for each of them; `foreach` does
them for all tensors in one call each; `fused` does all in one kernel (claim C3). The larger the tensors, the less the number
of calls matters: on the CPU `foreach` may then be slower than the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

from rlbench.models import mlp
from rlbench.speedups.speedup import Speedup
from rlbench.updates.functional import EPS

BATCH_OF_STEPS = 3  # updates that are compared


def for_loop(parameters: Iterable[Tensor], learning_rate: float) -> Optimizer:
    """PyTorch's default on the CPU: one tensor after another."""
    return Adam(parameters, lr=learning_rate, eps=EPS, foreach=False, fused=False)


def foreach(parameters: Iterable[Tensor], learning_rate: float) -> Optimizer:
    """PyTorch's default on CUDA: one call for all tensors, an operation at a time."""
    return Adam(parameters, lr=learning_rate, eps=EPS, foreach=True)


def fused(parameters: Iterable[Tensor], learning_rate: float) -> Optimizer:
    """The whole step in one kernel."""
    return Adam(parameters, lr=learning_rate, eps=EPS, fused=True)


VARIANTS = {"for_loop": for_loop, "foreach": foreach, "fused": fused}


def make_inputs(size: int, seed: int, device: str) -> tuple[int, int, str]:
    return size, seed, device


def bind(variant: Callable[..., Optimizer], inputs: tuple[int, int, str]) -> Callable[[], list[Tensor]]:
    """A 16-size-size-3 network with given gradients; the call does a few steps and hands out the parameters."""
    size, seed, device = inputs
    generator = torch.Generator().manual_seed(seed)
    network = mlp(16, (size, size), 3, generator).to(device)
    parameters = list(network.parameters())
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(device)
    optimizer = variant(parameters, 1e-3)

    def steps() -> list[Tensor]:
        for _ in range(BATCH_OF_STEPS):
            optimizer.step()
        return [parameter.detach() for parameter in parameters]

    return steps


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """Equal but for rounding: a step is at most the learning rate, here 1e-3."""
    for one, other in zip(expected, actual, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    slot = "ppo_update" if getattr(config, "trainer", "dqn") == "ppo" else "update"
    if choices is not None and getattr(choices, slot) != "eager":
        return f"{slot}={getattr(choices, slot)!r} has an Adam of its own; leave this slot out"
    return None


SPEEDUP = Speedup(
    name="optimizer",
    question="What does Adam cost?",
    summary="One call for all parameters instead of a dozen for each. Matters most for small networks.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(64, 256, 1024),
    size_means="width of two hidden layers",
    workloads=("dqn", "ppo"),
    claims=("C3",),
)
