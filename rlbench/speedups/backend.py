"""Backend: switches of PyTorch on CUDA that guides recommend.

`cudnn_benchmark` lets cuDNN try its algorithms and keep the quickest; that touches convolutions alone, and a network without
them, or whose convolutions are written as matrix products as this library's are, gains nothing (claim B6). Emptying the cache
gives blocks of memory that are free back to the driver, where the next allocation has to fetch them again, after waiting for
the device: it helps another process on the same GPU, or against fragmentation, and costs time (claim B7).
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from rlbench.speedups.speedup import Speedup

BATCH, CHANNELS, LENGTH = 64, 16, 64


class Default:
    """PyTorch as it is. Entered around a training; `on_log` is called at its log points."""

    def __enter__(self) -> Default:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def on_log(self) -> None:
        return None


class CudnnBenchmark(Default):
    """`torch.backends.cudnn.benchmark`, put back afterwards."""

    def __enter__(self) -> CudnnBenchmark:
        self.before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = True
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        torch.backends.cudnn.benchmark = self.before


class EmptyCacheEachEpoch(Default):
    """`torch.cuda.empty_cache()` at every log point."""

    def on_log(self) -> None:
        torch.cuda.empty_cache()


VARIANTS = {"default": Default, "cudnn_benchmark": CudnnBenchmark, "empty_cache_each_epoch": EmptyCacheEachEpoch}


def make_inputs(size: int, seed: int, device: str) -> tuple[nn.Module, Tensor, int]:
    """A convolution and a dense layer, with weights from the seed, and `size` updates' worth of input."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(
        nn.utils.skip_init(nn.Conv1d, CHANNELS, CHANNELS, 5),
        nn.ReLU(),
        nn.Flatten(),
        nn.utils.skip_init(nn.Linear, CHANNELS * (LENGTH - 4), 3),
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.uniform_(-0.1, 0.1, generator=generator)
    inputs = torch.randn((BATCH, CHANNELS, LENGTH), generator=generator)
    return network.to(device), inputs.to(device), size


def bind(variant: Callable[[], Any], inputs: tuple[nn.Module, Tensor, int]) -> Callable[[], list[Tensor]]:
    """The call is an interval between two log points: forward and backward some times, then `on_log`."""
    network, rows, size = inputs
    backend = variant()

    def interval() -> list[Tensor]:
        with backend:
            for _ in range(size):
                network.zero_grad(set_to_none=True)
                network(rows).square().mean().backward()
            backend.on_log()
        return [parameter.grad for parameter in network.parameters()]

    return interval


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """Equal but for rounding: other algorithms add in another order."""
    for one, other in zip(expected, actual, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=2e-5)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant != "default" and device.type != "cuda":
        return f"{variant} needs CUDA, and this runs on {device.type}; accepted here: default"
    return None


SPEEDUP = Speedup(
    name="backend",
    question="Do cuDNN's benchmark and emptying CUDA's cache help?",
    summary="Switches of PyTorch on CUDA. The first touches convolutions alone; the second costs time at every log point.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(1, 16, 128),
    size_means="forward and backward passes between two log points",
    workloads=("dqn", "ppo"),
    claims=("B6", "B7"),
)
