"""What a batch env is: many environments as pure functions of tensors, on one device, with nothing read on the host."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from rlbench.batch import Layout
from rlbench.envs.spaces import EnvError


class BatchStep(NamedTuple):
    """What one step of N environments gives."""

    obs: Tensor  # (N, D) float32: where to act next; the first of a new episode where one ended
    reward: Tensor  # (N,) float64
    terminated: Tensor  # (N,) bool
    truncated: Tensor  # (N,) bool
    next_obs: Tensor  # (N, D) float32: where the step led, the last of its episode where one ended


class BatchEnv(Protocol):
    """Rules and data of N environments; it holds no state. One whose episode has ended is restarted in the same step.

    Episode e of environment i starts from numbers that depend on (seed, e, i) alone.
    """

    name: str
    num_envs: int
    obs_size: int  # D
    num_actions: int  # A
    device: torch.device
    layout: Layout | None

    def reset(self) -> tuple[Any, Tensor]:
        """All environments at the start of their first episode: a state (a NamedTuple of tensors) and observations (N, D)."""
        ...

    def step(self, state: Any, action: Tensor) -> tuple[Any, BatchStep]:
        """Take action (N,) int64; returns the next state."""
        ...


def check_kept(before: Tensor, after: Tensor, name: str) -> None:
    """Refuse observations that a step wrote over the last ones: a transition would lead from a state to itself.

    Raises:
        EnvError: where both lie in the same memory.
    """
    if before.data_ptr() == after.data_ptr():
        raise EnvError(
            f"{name}: a step wrote its observations over those of the step before; accepted are new tensors at every step."
        )
