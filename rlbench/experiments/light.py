"""Speed of light: the floating-point operations of an update, over what this machine was measured to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch

from rlbench.models import forward_flops
from rlbench.timing import synchronize


def update_flops(widths: Sequence[int], batch_size: int, double_dqn: bool = True) -> int:
    """Operations of the matrix products of one DQN update; what is added by element is left out.

    A forward pass each of the online and the target network, and for Double DQN one more at the next states; backward, one
    product for the weights of each layer and one for the inputs of each but the first.
    """
    forward = forward_flops(widths)
    backward = 2 * forward - forward_flops(widths[:2])
    return batch_size * ((3 if double_dqn else 2) * forward + backward)


def square_product(
    size: int, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32
) -> Callable[[], object]:
    """A product of two `size`-square matrices into memory that is there: 2 size³ operations."""
    left, right = (_square(size, seed).to(device, dtype) for seed in (0, 1))
    return partial(torch.mm, left, right, out=torch.empty_like(left))


def _square(size: int, seed: int) -> torch.Tensor:
    return torch.randn((size, size), generator=torch.Generator().manual_seed(seed), dtype=torch.float32, device="cpu")


def peak_sizes(device: str | torch.device = "cpu") -> tuple[int, ...]:
    """Sizes of which one is near the peak: on a CPU they fit its caches, a GPU needs more to be busy."""
    return (512, 1024, 2048, 4096) if torch.device(device).type == "cuda" else (256, 512, 1024)


def matmul_peak(
    device: str | torch.device = "cpu",
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    dtype: torch.dtype = torch.float32,
) -> float:
    """Floating-point operations a second of square products, the best of some sizes and times: the peak as measured."""
    return max(_best_rate(size, device, repeats, dtype) for size in sizes or peak_sizes(device))


def _best_rate(size: int, device: str | torch.device, repeats: int, dtype: torch.dtype) -> float:
    product, times = square_product(size, device, dtype), []
    for _ in range(repeats + 1):  # the first one loads what it needs
        synchronize(device)
        start = time.perf_counter()
        product()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times[1:])
