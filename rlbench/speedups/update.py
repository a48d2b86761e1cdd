"""Update: one step of Adam on the temporal-difference loss.

Eager PyTorch spends most of a small network's update on calls: a hundred operations of a few microseconds each, for arithmetic
that one core does in a tenth of that. `native` does the whole update in one call of a C function (claim B20): products whose
tiles stay in vector registers, then gradient, clipping and Adam in one pass over flat storage. It gains most on small networks
and batches; on large ones both run near the core's limit, and what remains is the gain of fewer passes over memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from rlbench.batch import Transitions, Updated
from rlbench.config import DQNConfig
from rlbench.losses import next_values, td_error, td_loss, td_target
from rlbench.models import mlp
from rlbench.native.build import BuildError, load
from rlbench.native.dqn import NativeUpdate
from rlbench.phases import phase
from rlbench.speedups.optimizer import EPS, for_loop
from rlbench.speedups.speedup import Speedup

MakeOptimizer = Callable[[list[Tensor], float], torch.optim.Optimizer]
UPDATES = 5  # a call of a measurement


class EagerUpdate:
    """The update as PyTorch code reads, one operation after another."""

    build_s = 0.0  # seconds of compilation

    def __init__(self, online: nn.Module, target: nn.Module, config: DQNConfig, make_optimizer: MakeOptimizer) -> None:
        self.online, self.target, self.config = online, target, config
        self.parameters = list(online.parameters())
        self.optimizer = make_optimizer(self.parameters, config.learning_rate)

    def __call__(self, batch: Transitions, learning_rate: float) -> Updated:
        """Update the online network on a minibatch."""
        with phase("forward"):
            targets = self.targets(batch)
            error = td_error(self.online(batch.obs), batch.action, targets)
            loss = td_loss(error, self.config.huber, batch.weight)
        with phase("backward"):
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
        with phase("optimizer"):
            if self.config.max_grad_norm:
                clip_grad_norm_(self.parameters, self.config.max_grad_norm)
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            self.optimizer.step()
        return Updated(loss.detach(), targets, error.detach())

    @torch.no_grad()
    def targets(self, batch: Transitions) -> Tensor:
        """Bellman targets (B,)."""
        q_online = self.online(batch.next_obs) if self.config.double_dqn else None
        value = next_values(self.target(batch.next_obs), q_online, batch.next_mask)
        return td_target(batch.reward, batch.discount, batch.terminated, value)


class Native(NativeUpdate):
    """The whole update in one native call: one phase, which has no parts."""

    def __init__(self, online: nn.Module, target: nn.Module, config: DQNConfig, make_optimizer: MakeOptimizer) -> None:
        del make_optimizer  # it has an Adam of its own; `requires` of the optimizer slot says so
        super().__init__(online, target, config.double_dqn, config.huber, config.max_grad_norm, EPS)

    def __call__(self, batch: Transitions, learning_rate: float) -> Updated:
        with phase("update"):
            return super().__call__(batch, learning_rate)


VARIANTS = {"eager": EagerUpdate, "native": Native}


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """Two 16-64-64-3 networks and minibatches of `size` rows."""
    generator = torch.Generator().manual_seed(seed)
    online, target = (mlp(16, (64, 64), 3, generator).to(device) for _ in range(2))

    def batch() -> Transitions:
        wide = [torch.randn((size, 16), generator=generator).to(device) for _ in range(2)]
        action = torch.randint(0, 3, (size,), generator=generator).to(device)
        reward = torch.randn(size, generator=generator).to(device)
        ends = [(torch.rand(size, generator=generator) < 0.1).float().to(device) for _ in range(2)]
        return Transitions(wide[0], action, reward, wide[1], *ends, torch.full((size,), 0.99, device=device))

    return online, target, [batch() for _ in range(UPDATES)]


def bind(variant: Callable[..., Any], inputs: tuple) -> Callable[[], list[Tensor]]:
    """The call does a few updates, each on its minibatch, and hands out losses and parameters."""
    online, target, batches = inputs
    online = copy.deepcopy(online)
    update = variant(online, copy.deepcopy(target), DQNConfig(), for_loop)

    def updates() -> list[Tensor]:
        losses = [update(batch, 1e-3).loss for batch in batches]
        return [torch.stack(losses), *(parameter.detach() for parameter in online.parameters())]

    return updates


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """Equal but for rounding: Adam moves each parameter by about the step size, 1e-3, at every update."""
    for one, other in zip(expected, actual, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=2e-5)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant != "native":
        return None
    if device.type != "cpu":
        return f"native code runs on the CPU, and this runs on {device.type}; accepted here: eager"
    try:
        load("dqn_update")
    except BuildError as error:
        return f"{error}; accepted here: eager"
    return None


SPEEDUP = Speedup(
    name="update",
    question="What does one update cost?",
    summary="One native call instead of a hundred small operations. Matters most for small networks and batches.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(32, 128, 1024),
    size_means="rows in a batch",
    claims=("B20",),
)
