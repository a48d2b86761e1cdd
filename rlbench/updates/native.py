"""The whole update in one native call: one phase, which has no parts."""

from __future__ import annotations

from torch import nn

from rlbench.batch import Transitions, Updated
from rlbench.config import DQNConfig
from rlbench.native.dqn import NativeUpdate
from rlbench.phases import phase
from rlbench.updates.functional import EPS
from rlbench.updates.precision import FLOAT32, Precision
from rlbench.updates.stepper import MakeOptimizer


class Native(NativeUpdate):
    """A C function: products whose tiles stay in vector registers, then gradient, clipping and Adam over flat storage."""

    chunk = 1
    recompiles = skipped = 0

    def __init__(
        self,
        online: nn.Module,
        target: nn.Module,
        config: DQNConfig,
        make_optimizer: MakeOptimizer,
        precision: Precision = FLOAT32,
    ) -> None:
        del make_optimizer  # it has an Adam of its own; `requires` of the optimizer slot says so
        if precision.autocast is not None:
            raise TypeError(f"the native update computes in float32, not in {precision.name}.")
        super().__init__(online, target, config.double_dqn, config.huber, config.max_grad_norm, EPS)

    def __call__(self, batch: Transitions, learning_rate: float) -> Updated:
        with phase("update"):
            return super().__call__(batch, learning_rate)

    @property
    def taken(self) -> int:
        return self.job.step
