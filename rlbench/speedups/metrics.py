"""Metrics: when the loss is read from the device.

`.item()` waits until the device has computed everything before it. On a GPU, where the host runs ahead, one in every update
makes it stand still; on the CPU there is nothing to wait for, and it costs well under a microsecond (claim C1). Sums that
stay on the device are read once a log interval.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench.models import mlp
from rlbench.speedups.speedup import Speedup, no_needs


class ItemEachStep:
    """Read every loss as it comes; the mean is of Python floats."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def add(self, loss: Tensor) -> None:
        """Take in one update's loss, a tensor without axes, or several, (K,)."""
        self.values.extend(loss.reshape(-1).tolist())  # sync: this variant's whole point

    def mean(self) -> float:
        """Mean since the last call, NaN where nothing came in; starts anew."""
        values, self.values = self.values, []
        return sum(values) / len(values) if values else float("nan")


class OnDevice:
    """Keep the sum on the device (in float64, so that many small losses are not lost in a large sum)."""

    def __init__(self) -> None:
        self.sum: Tensor | None = None
        self.count = 0

    def add(self, loss: Tensor) -> None:
        if self.sum is None:
            self.sum = torch.zeros((), dtype=torch.float64, device=loss.device)
        self.sum += loss.detach() if loss.ndim == 0 else loss.detach().sum(dtype=torch.float64)
        self.count += loss.numel()

    def mean(self) -> float:
        if self.sum is None or not self.count:
            return float("nan")
        mean = self.sum.item() / self.count  # sync: once a log interval
        self.sum.zero_()
        self.count = 0
        return mean


VARIANTS = {"item_each_step": ItemEachStep, "on_device": OnDevice}
UPDATES = 20


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """A network of the given width and a batch, whose output stands for a loss that the device has yet to compute."""
    generator = torch.Generator().manual_seed(seed)
    network = mlp(16, (size, size), 3, generator).to(device)
    return network, torch.randn((128, 16), generator=generator).to(device)


def bind(variant: Callable[..., Any], inputs: tuple) -> Callable[[], Tensor]:
    """The call computes some losses, adds each, and reads the mean, as a trainer does between two log points."""
    network, batch = inputs
    metric = variant()

    @torch.no_grad()
    def interval() -> Tensor:
        for _ in range(UPDATES):
            metric.add(network(batch).square().mean())
        return torch.tensor(metric.mean())

    return interval


def check(expected: Tensor, actual: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=0.0)


SPEEDUP = Speedup(
    name="metrics",
    question="What does one .item() cost?",
    summary="Read the loss once a log interval, not at every update. Matters on a GPU; on the CPU there is nothing to wait for.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=no_needs,
    sameness="close",
    sizes=(64, 256),
    size_means="width of two hidden layers",
    workloads=("dqn", "ppo"),
    claims=("C1",),
)
