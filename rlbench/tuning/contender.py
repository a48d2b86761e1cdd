"""One way to train, advanced a block at a time, so that its set-up is paid once and ways can take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
    ("evaluate", "packed_triton"),
    ("gae", "compiled"),
}


class BlockLog(Logbook):
    """A log that lets loops of many iterations a call take no more env steps than are asked for.

    Attributes:
        most: env steps.
    """

    most = 1 << 62

    def room(self) -> int:
        return max(1, min(super().room(), self.most))


class TimeUp(RuntimeError):
    """The time was over before a training was warm."""


def reason(error: Exception) -> str:
    """Why a candidate could not run, for a line of text."""
    return str(error) if isinstance(error, TimeUp) else f"{type(error).__name__}: {error}"


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
    def compiled(self) -> frozenset[tuple[str, str]]:
        """What of the changes has to be compiled, as (slot, variant)."""
        return frozenset(set(self.changed.items()) & COMPILED)


class Contender:
    """A live training of a candidate.

    It explores as at the end of a training from its first step, so that those that are further on do nothing else than those
    that are not. A training that comes to its end goes on as a new one, with the next seed. What compiling takes is no part of a
    block's seconds.

    Attributes:
        first_s: seconds until it was warm: set-up, compilation, filling the replay, the first updates.
        compile_s: seconds of compiling so far.
        give_up: asked while it warms up; `TimeUp` is raised where it says so.
    """

    def __init__(self, candidate: Candidate, env: Any, device: str) -> None:
        self.candidate, self.env, self.device = candidate, env, device
        config = candidate.config.replace(eval_episodes=0, eval_frequency=0)
        if hasattr(config, "start_e"):
            config = config.replace(start_e=config.end_e)
        self.config = config
        self.trainer: Any = None
        self.log: Any = None
        self.first_s = self.compile_s = 0.0
        self.trainings = 0
        self.rate = 0.0  # env steps a second, of late
        self.give_up: Callable[[], bool] = lambda: False

    def warm_up(self) -> None:
        """Make it and train until learning is under way. Raises `TimeUp`."""
        start = time.perf_counter()
        self._renew()
        self.first_s = time.perf_counter() - start

    def block(self, seconds: float) -> tuple[int, int, float]:
        """Train for about that long, an iteration at least: env steps, updates, and the seconds that it took."""
        if self.trainer is None:
            self.warm_up()
        torch.set_num_threads(self.candidate.threads)
        steps, updates, spent = 0, 0, 0.0
        while spent < seconds:
            if self.trainer.env_steps >= self.config.total_timesteps:
                self._renew()
            trainer = self.trainer
            before = trainer.env_steps, trainer.updates, trainer.compile_s
            start = time.perf_counter()
            end = start + seconds - spent
            self.log.most = round(
                self.rate * (seconds - spent)
            )  # else slow ones would go on long beyond the block's end
            self._train(lambda end=end: time.perf_counter() >= end)
            passed, compiling = time.perf_counter() - start, trainer.compile_s - before[2]
            self.compile_s += compiling
            spent += max(0.0, passed - compiling)
            self.rate = (trainer.env_steps - before[0]) / max(1e-9, passed - compiling)
            steps, updates = steps + trainer.env_steps - before[0], updates + trainer.updates - before[1]
        return steps, updates, spent

    def close(self) -> None:
        """End it and let go of its memory; asked for another block it starts anew."""
        if self.trainer is not None:
            self.trainer.close()
        self.trainer = self.log = None

    def _renew(self) -> None:
        self.close()
        torch.set_num_threads(self.candidate.threads)
        config = self.config.replace(seed=self.config.seed + self.trainings)
        self.trainings += 1
        self.trainer = trainer = make_trainer(config, self.candidate.choices, self.env, self.device)
        self.log = BlockLog(trainer, False, None, None)
        wanted = min(WARM_UP_UPDATES, 3 * getattr(config, "gradient_steps", 1))
        end = config.total_timesteps // 2
        warm = lambda: trainer.updates >= wanted or trainer.env_steps >= end  # noqa: E731
        start, compiled = time.perf_counter(), trainer.compile_s
        self._train(lambda: warm() or self.give_up())
        self.compile_s += trainer.compile_s
        self.rate = trainer.env_steps / max(1e-9, time.perf_counter() - start - (trainer.compile_s - compiled))
        if not warm():
            self.close()
            raise TimeUp("the time was up before it was warm")

    def _train(self, enough: Callable[[], bool]) -> None:
        train(self.trainer, self.log, lambda: enough() or self.trainer.env_steps >= self.config.total_timesteps)


def train(trainer: Any, log: BlockLog, enough: Callable[[], bool]) -> None:
    """Iterations, at least one, until `enough()` says so: what `Trainer.train` does, without its last evaluation."""
    with trainer.precision.setting(), trainer.backend, phase("python"):
        while True:
            trainer.iterate(log)
            log.step()
            if enough():
                break
    synchronize(trainer.device)


@contextmanager
def keeping_threads() -> Iterator[None]:
    """Afterwards the number of torch threads is what it was."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
