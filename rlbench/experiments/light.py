"""Speed of light: the floating-point operations of an update, over what this machine was measured to do."""

from __future__ import annotations

import time
from collections.abc import Sequence

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


def matmul_peak(device: str | torch.device = "cpu", size: int = 1024, repeats: int = 5) -> float:
    """Floating-point operations a second of a square float32 matrix product, the best of some: the peak as measured."""
    left, right = (torch.randn((size, size), generator=torch.Generator().manual_seed(k)).to(device) for k in (0, 1))
    times = []
    for _ in range(repeats + 1):  # the first one loads what it needs
        synchronize(device)
        start = time.perf_counter()
        left @ right
        synchronize(device)
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times[1:])
