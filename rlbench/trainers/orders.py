"""A plan as tensors on the device: what each of the coming iterations is to do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlbench.trainers.plan import COLLECT, SYNC, UPDATE, Plan


class Orders(NamedTuple):
    """For I iterations with R rounds of updates each (which may differ), and U updates in all."""

    epsilon: Tensor  # (I,) float32
    learning_rate: Tensor  # (U,) float64
    # (sum of R + 1,) float32: share of the online weights that the target takes before each round, and at the end.
    sync: Tensor

    def part(self, first: int, rounds: tuple[int, ...], before: int, gradient_steps: int) -> Orders:
        """The orders of iterations `first` and on that have `rounds` each, `before` rounds having come earlier."""
        done, count = before * gradient_steps, sum(rounds) * gradient_steps
        syncs = first + before
        return Orders(
            self.epsilon[first : first + len(rounds)],
            self.learning_rate[done : done + count],
            self.sync[syncs : syncs + sum(rounds) + len(rounds)],
        )


def orders_of(plan: Plan, gradient_steps: int, tau: float, device: torch.device) -> tuple[Orders, tuple[int, ...]]:
    """The orders of a plan's iterations, in one copy to the device each; and the rounds of each iteration.

    Several target syncs in one place are one with the share 1 - (1 - tau)^count.
    """
    operation = plan.operation
    iteration = np.cumsum(operation == COLLECT) - 1  # of each operation
    updates = np.bincount(iteration[operation == UPDATE], minlength=plan.iterations)
    rounds = updates // gradient_steps
    # A sync comes after `done` rounds of all iterations; each iteration before has one place more than it has rounds.
    done = np.cumsum(operation == UPDATE) // gradient_steps
    place = (done + iteration)[operation == SYNC]
    syncs = np.bincount(place, minlength=int(rounds.sum()) + plan.iterations)
    orders = Orders(
        torch.from_numpy(plan.argument[operation == COLLECT].astype(np.float32)),
        torch.from_numpy(plan.argument[operation == UPDATE]),
        torch.from_numpy((1.0 - (1.0 - tau) ** syncs).astype(np.float32)),
    )
    of_each = tuple(rounds.tolist())  # sync: NumPy's, on the host
    return Orders(*(tensor.to(device, non_blocking=True) for tensor in orders)), of_each
