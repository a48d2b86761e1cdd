"""n-step returns as a pure function of tensors: what `NStep` does, with shapes that never change."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.buffers.packed import pack
from rlbench.buffers.rows import RowSpec
from rlbench.envs.batch import BatchStep


class Held(NamedTuple):
    """Each env's last steps, the newest in column 0: column k has summed k + 1 rewards."""

    obs: Tensor  # (N, n, D)
    action: Tensor  # (N, n) int64
    total: Tensor  # (N, n) float64: discounted sum so far
    live: Tensor  # (N, n) bool: not yet stored


def nothing_held(num_envs: int, n: int, obs_size: int, device: torch.device) -> Held:
    """Before the first step."""
    obs = torch.zeros((num_envs, n, obs_size), device=device)
    total = torch.zeros((num_envs, n), dtype=torch.float64, device=device)
    return Held(obs, total.to(torch.int64), total, total.to(torch.bool))


def hold(
    held: Held, obs: Tensor, action: Tensor, step: BatchStep, powers: Tensor, spec: RowSpec
) -> tuple[Held, Tensor, Tensor]:
    """Take in a step; `powers` (n + 1,) float64 are those of gamma, from 0.

    Returns:
        What is held now; candidate rows (N * n, W), env by env, an env's oldest first; which of them (N * n,) are complete:
        after n steps, or at an end with the shorter sums that there are.
    """
    envs, n = held.live.shape
    total = torch.cat((torch.zeros_like(held.total[:, :1]), held.total[:, :-1]), 1)
    total = total + powers[:-1] * step.reward[:, None]
    live = torch.cat((torch.ones_like(held.live[:, :1]), held.live[:, :-1]), 1)
    now = Held(
        torch.cat((obs[:, None], held.obs[:, :-1]), 1),
        torch.cat((action[:, None], held.action[:, :-1]), 1),
        total,
        live,
    )
    ended = (step.terminated | step.truncated)[:, None]
    oldest = torch.arange(n, device=obs.device) == n - 1
    complete = live & (ended | oldest)
    each = lambda column: column[:, None].expand(envs, n).reshape(-1)  # noqa: E731
    rows = Transitions(
        now.obs.flip(1).reshape(envs * n, -1),
        now.action.flip(1).reshape(-1),
        total.flip(1).reshape(-1),
        step.next_obs[:, None].expand(envs, n, -1).reshape(envs * n, -1),
        each(step.terminated),
        each(step.truncated),
        powers[1:].flip(0).expand(envs, n).reshape(-1),
    )
    return now._replace(live=live & ~complete), pack(rows, spec), complete.flip(1).reshape(-1)
