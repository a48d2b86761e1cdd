"""Clipping, loss scaling and the optimizer's step, as every eager update needs them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from rlbench.updates.precision import FLOAT32, Precision

MakeOptimizer = Callable[[list[Tensor], float], torch.optim.Optimizer]


class Stepper:
    """Steps over the gradients of parameters.

    Attributes:
        skipped: steps that were not taken, for an infinite gradient under loss scaling; a tensor () where there may be some.
    """

    def __init__(
        self,
        parameters: list[Tensor],
        make_optimizer: MakeOptimizer,
        learning_rate: float,
        max_grad_norm: float,
        precision: Precision = FLOAT32,
    ) -> None:
        self.parameters, self.max_grad_norm, self.precision = parameters, max_grad_norm, precision
        self.optimizer = make_optimizer(parameters, learning_rate)
        self.scaler = torch.amp.GradScaler(precision.device_type, enabled=precision.scaled)
        self.calls = 0
        self.skipped: int | Tensor = 0

    def backward(self, loss: Tensor) -> None:
        """Add a loss's gradients, scaled where losses are."""
        self.scaler.scale(loss).backward()

    def step(self, learning_rate: float) -> None:
        """Clip and let Adam step. A scaled gradient is unscaled first, and one that is infinite is not stepped on."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.calls += 1
        self.scaler.unscale_(self.optimizer)
        if self.max_grad_norm or self.precision.scaled:
            norm = clip_grad_norm_(self.parameters, self.max_grad_norm or math.inf)
            if self.precision.scaled:
                self.skipped = self.skipped + ~norm.isfinite()
        self.scaler.step(self.optimizer)  # sync: GradScaler asks whether to step, but for fused Adam
        self.scaler.update()

    @property
    def taken(self) -> int | Tensor:
        """Steps that were taken so far: those of Adam's own count."""
        return self.calls - self.skipped
