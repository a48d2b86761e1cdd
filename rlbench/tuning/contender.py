"""One way to train, advanced a block at a time, so that its set-up is paid once and ways can take turns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from rlbench.phases import phase
from rlbench.speedups import Choices
from rlbench.timing import synchronize
from rlbench.trainers.logbook import WARM_UP_UPDATES, Logbook
from rlbench.trainers.make import make_trainer

# Compiled before the first update, for many seconds.
COMPILED = {
    ("update", "compiled"),
    ("update", "chunked"),
    ("update", "cuda_graph"),
    ("loop", "fused"),
    ("ppo_update", "compiled"),
    ("evaluate", "packed_compiled"),
    ("gae", "compiled"),
}


@dataclass(frozen=True)
class Candidate:
    """Choices, torch threads, and settings that differ from the run's; `changed` says against the baseline what it is."""

    choices: Choices
    threads: int
    config: Any
    changed: Mapping[str, Any]

    @property
    def label(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.changed.items()) or "as it is"

    @property
    def key(self) -> tuple:
        return self.choices, self.threads, self.config

    @property
    def compiles(self) -> bool:
        return any(
            (slot, variant) in COMPILED for slot, variant in self.choices.to_dict().items() if slot in self.changed
        ) or ("choices" in self.changed and self.choices.loop == "fused")


class Contender:
    """A live training of a candidate.

    It explores as at the end of a training from its first step, so that those that are further on do nothing else than those
    that are not. A training that comes to its end goes on as a new one, with the next seed.

    Attributes:
        first_s: seconds until it was warm: set-up, compilation, filling the replay, the first updates.
        compile_s: of these for compiling.
    """

    def __init__(self, candidate: Candidate, env: Any, device: str) -> None:
        self.candidate, self.env, self.device = candidate, env, device
        config = candidate.config.replace(eval_episodes=0, eval_frequency=0)
        if hasattr(config, "start_e"):
            config = config.replace(start_e=config.end_e)
        self.config = config
        self.trainer: Any = None
        self.first_s = self.compile_s = 0.0
        self.trainings = 0

    def warm_up(self) -> None:
        """Make it and train until learning is under way."""
        start = time.perf_counter()
        self._renew()
        self.compile_s = self.trainer.compile_s
        self.first_s = time.perf_counter() - start

    def block(self, seconds: float) -> tuple[int, int, float]:
        """Train for about that long: env steps, updates, and the seconds that it took."""
        if self.trainer is None:
            self.warm_up()
        torch.set_num_threads(self.candidate.threads)
        trainer = self.trainer
        before, updates = trainer.env_steps, trainer.updates
        steps, made, spent = 0, 0, 0.0
        while spent < seconds:
            if trainer.env_steps >= self.config.total_timesteps:
                steps, made = steps + trainer.env_steps - before, made + trainer.updates - updates
                self._renew()
                trainer = self.trainer
                before, updates = trainer.env_steps, trainer.updates
            start = time.perf_counter()
            end = start + seconds - spent
            self._train(lambda end=end: time.perf_counter() >= end)
            spent += time.perf_counter() - start
        return steps + trainer.env_steps - before, made + trainer.updates - updates, spent

    def close(self) -> None:
        if self.trainer is not None:
            self.trainer.close()

    def _renew(self) -> None:
        self.close()
        torch.set_num_threads(self.candidate.threads)
        config = self.config.replace(seed=self.config.seed + self.trainings)
        self.trainings += 1
        self.trainer = make_trainer(config, self.candidate.choices, self.env, self.device)
        wanted = min(WARM_UP_UPDATES, 3 * getattr(config, "gradient_steps", 1))
        end = config.total_timesteps // 2
        self._train(lambda: self.trainer.updates >= wanted or self.trainer.env_steps >= end)

    def _train(self, enough: Any) -> None:
        """Iterations until `enough()` says so, or the training is over: what `train` does, without its last evaluation."""
        trainer = self.trainer
        log = Logbook(trainer, False, None, None)
        with log, trainer.precision.setting(), trainer.backend, phase("python"):
            while trainer.env_steps < self.config.total_timesteps:
                trainer.iterate(log)
                log.step()
                if enough():
                    break
        synchronize(trainer.device)
