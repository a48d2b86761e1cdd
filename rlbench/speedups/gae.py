"""Generalised advantage estimation: a recurrence over time.

Element by element in Python it takes a microsecond a sample. A row at a time (all environments together) it takes a call a
step, so that it costs the same for 1 environment as for 100. The scan joins ever longer intervals and takes log2(T) rounds
over everything: more arithmetic, fewer calls, which pays where calls are what costs (a GPU, few environments) and not where
rows are long. `compiled` makes loops of the scan's operations; compiling takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench.advantages import CompiledGae, gae_compiled, gae_loop, gae_rows, gae_scan
from rlbench.compile import why_not
from rlbench.speedups.speedup import Speedup

VARIANTS = {"loop": gae_loop, "rows": gae_rows, "scan": gae_scan, "compiled": gae_compiled}
STEPS = 128


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """Steps of `size` environments with an end in every twentieth, truncations among them, on the last row too."""
    generator = torch.Generator().manual_seed(seed)
    shape = (STEPS, size)
    floats = [torch.randn(shape, generator=generator).to(device) for _ in range(3)]
    terminated = torch.rand(shape, generator=generator) < 0.05
    truncated = (torch.rand(shape, generator=generator) < 0.05) & ~terminated
    terminated[-1, 0] = not bool(truncated[-1, 0])
    turn = -1.0 if seed % 2 else 1.0
    return *floats, terminated.to(device), truncated.to(device), 0.99, 0.95, turn


def bind(variant: Callable[..., Tensor], inputs: tuple) -> Callable[[], Tensor]:
    if isinstance(variant, CompiledGae):
        variant.forget()  # so that the first call shows what compiling costs
    return lambda: variant(*inputs)


def check(expected: Tensor, actual: Tensor) -> None:
    """Equal but for rounding: sums of up to 128 terms, in another order."""
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    # Rewards of Gymnasium envs lie on the host, wherever the policy is.
    where = "cpu" if env is not None and env.game is None else device.type
    if variant == "compiled" and (reason := why_not(where)):
        return f"{reason}; accepted here: loop, rows, scan"
    return None


SPEEDUP = Speedup(
    name="gae",
    question="What do advantages cost?",
    summary="All environments in one operation, or all steps in log2(T). Matters where samples are many and updates few.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(1, 16, 256),
    size_means=f"environments, {STEPS} steps of each",
    workloads=("ppo",),
    claims=("B19",),
)
