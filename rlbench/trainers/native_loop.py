"""Several iterations in one native call: `loop="native"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from rlbench.native.dqn_loop import NativeIterations
from rlbench.phases import phase
from rlbench.trainers.finite import check_outcome, finite
from rlbench.trainers.plan import make_plan

if TYPE_CHECKING:
    from rlbench.trainers.dqn import DQN
    from rlbench.trainers.logbook import Logbook

MOST_STEPS = 16_384  # env steps in a call: an interrupt is heard in between


class NativeLoop:
    """Runs up to the next point at which the log wants to look, on the trainer's own networks and replay."""

    recompiles = 0

    def __init__(self, trainer: DQN) -> None:
        self.trainer, self.num_envs = trainer, trainer.collector.num_envs
        self.native = NativeIterations(trainer.config, trainer.apply_update, trainer.collector.env, trainer.replay)
        self.build_s = self.native.build_s + trainer.collector.build_s

    def advance(self, log: Logbook) -> None:
        trainer = self.trainer
        steps = min(log.room(), MOST_STEPS)
        last_sync = trainer.target_sync.last
        plan = make_plan(trainer.config, self.num_envs, trainer.env_steps, last_sync, -(-steps // self.num_envs))
        self.native.struct.iteration, self.native.struct.updates = trainer.iterations, trainer.updates
        with phase("iterations"):
            counts = {"iterations": plan.iterations, "updates": plan.updates}
            ran = self.native.run(plan.operation, plan.argument, trainer.env_steps, **counts)
            trainer.follow(plan)  # so that counters are up to date where the phase ends
        arrays, ended = self.native.arrays, np.array([each for _, each, _ in ran.episodes])
        good = finite(arrays["returns"]) and finite(arrays["obs"]) and finite(ended)
        check_outcome(good, trainer.collector.name, trainer.env_steps)
        if len(ran.losses):
            trainer.losses.add(torch.from_numpy(ran.losses))
            trainer.last_target = self.native.target
        log.episodes_at(ran.episodes)
