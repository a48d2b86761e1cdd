"""The target network and when it follows the online one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rlbench.config import DQNConfig
from rlbench.trainers.plan import Plan
from rlbench.trainers.schedule import Every


class TargetSync:
    """Moves the target towards the online network by tau, once for each period of env steps that is crossed.

    Attributes:
        last: the env step up to which that has been done.
        count: how often.
    """

    def __init__(self, online: nn.Module, target: nn.Module, config: DQNConfig, updater: Any, may_skip: bool) -> None:
        self.online, self.target, self.tau = online, target, config.tau
        self.due = Every(config.target_network_frequency, start=config.learning_starts)
        self.count = 0
        self.updater, self.may_skip = updater, may_skip  # whether an update may be skipped, as under loss scaling
        self.taken: int | Tensor = 0  # updates not skipped, at the last sync

    @property
    def last(self) -> int:
        return self.due.last

    @torch.no_grad()
    def up_to(self, step: int) -> None:
        """Do what is due up to env step `step`."""
        for _ in range(self.due.crossed(step)):
            share = self.share()
            for slow, quick in zip(self.target.parameters(), self.online.parameters(), strict=True):
                slow.lerp_(quick, share)
            self.count += 1

    def share(self) -> float | Tensor:
        """tau; 0 where every update since the last sync was skipped."""
        if not self.may_skip:
            return self.tau
        before, self.taken = self.taken, torch.as_tensor(self.updater.taken).clone()
        return self.tau * (self.taken > before).float()

    def follow(self, plan: Plan) -> None:
        """Count what somebody else has done as the plan says."""
        self.due.last, self.count = max(self.due.last, plan.env_steps), self.count + plan.syncs
