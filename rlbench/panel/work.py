"""The panel's work in a thread: trainings that can be watched and stopped from outside."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlbench.config import Config
from rlbench.progress import duration
from rlbench.speedups import Choices
from rlbench.trainers.evaluate import evaluate
from rlbench.trainers.history import History
from rlbench.trainers.make import make_trainer
from rlbench.trainers.trainer import Trainer

RATE_WINDOW_S = 2.0


class Stopped(Exception):
    """Raised inside the work when a stop was asked for."""


@dataclass(frozen=True)
class Status:
    """What is going on now. `state` is idle, working, done, stopped or failed; steps are env steps of the whole job."""

    state: str = "idle"
    job: str = ""
    done: int = 0
    total: int = 1
    sps: float = math.nan
    eta_s: float = math.nan
    mean_return: float = math.nan
    text: str = ""

    @property
    def share(self) -> float:
        return min(1.0, self.done / max(1, self.total))

    def line(self) -> str:
        """ "62 % · 5,812 steps/s · return 23.1 · 0:02 left", or "100 % · done": what is known of it."""
        parts = [f"{100 * self.share:.0f} %"]
        if self.state != "working":
            return f"{parts[0]} · {self.state}"
        if self.sps == self.sps:
            parts.append(f"{self.sps:,.0f} steps/s")
        if self.mean_return == self.mean_return:
            parts.append(f"return {self.mean_return:.4g}")
        if math.isfinite(self.eta_s):
            parts.append(f"{duration(self.eta_s)} left")
        return " · ".join(parts)


class Work:
    """One job in a daemon thread. `status()`, `stop()` and `wait()` may be called from any thread.

    The job is a function of this object; it trains with `train`, and what it returns is the last line shown. An
    exception ends it as "failed", with one sentence for the reader and the exception itself in `error`.
    """

    def __init__(self, job: str, env: Any, device: str, total: int, run: Callable[[Work], str]) -> None:
        """`env` is a factory, a vector env or a game; `total` counts the env steps of all trainings of the job."""
        self.job, self.env, self.device, self.total, self.run = job, env, device, total, run
        self.state, self.text, self.error = "working", "", None
        self.asked = threading.Event()
        self.trainer: Trainer | None = None
        self.evaluated: Trainer | None = None  # whose games are played for an evaluation
        self.steps_before = 0  # env steps of this job's earlier trainings
        self.mean_return = math.nan
        self.started = self.ended = time.perf_counter()
        self.seen: deque[tuple[float, int]] = deque()  # (seconds, steps) of the last RATE_WINDOW_S
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._main, name=f"rlbench {job}", daemon=True)

    def start(self) -> Work:
        self.thread.start()
        return self

    def stop(self) -> None:
        """Ask it to end after the iteration in hand."""
        self.asked.set()
        for trainer in (self.trainer, self.evaluated):
            if trainer is not None:
                trainer.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """True once it has ended."""
        self.thread.join(timeout)
        return not self.thread.is_alive()

    def _main(self) -> None:
        try:
            self.text = self.run(self)
            self.state = "stopped" if self.asked.is_set() else "done"
        except Exception as error:  # the thread's only reader is the panel
            self.error = error
            self.text = sentence(error)
            self.state = "failed"
        finally:
            self.ended = time.perf_counter()

    def train(self, config: Config, choices: Choices) -> tuple[History, Trainer]:
        """Train without the final evaluation, which could not be stopped; `evaluate` makes it."""
        trainer = make_trainer(config.replace(eval_episodes=0), choices, self.env, self.device)
        self.trainer = trainer
        if self.asked.is_set():  # asked before there was a trainer to tell
            trainer.stop()
        history = trainer.train(progress=False, on_log=self._note)
        trainer.close()
        with self.lock:
            self.steps_before += history.env_steps
            self.trainer = None
        return history, trainer

    def evaluate(self, config: Config, trainer: Trainer, make_env: Callable[[], Any] | None) -> list[float]:
        """Returns of the greedy policy on fresh envs, or in games. Raises Stopped where a stop was asked for."""
        if trainer.source.game is not None:
            return self._evaluate_game(config, trainer)

        def policy(obs: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
            if self.asked.is_set():
                raise Stopped
            return trainer.greedy(obs, mask)

        return evaluate(policy, make_env, config.eval_episodes, config.seed)

    def _evaluate_game(self, config: Config, trainer: Trainer) -> list[float]:
        self.evaluated = trainer
        returns = [] if self.asked.is_set() else trainer.evaluate(config.eval_episodes)
        self.evaluated = None
        if self.asked.is_set():
            raise Stopped
        return returns

    def _note(self, log: dict) -> None:
        self.mean_return = log["mean_return"]

    def status(self) -> Status:
        """Where it stands. The rate is that of the last seconds, the time left from the whole job's rate."""
        working = self.state == "working"
        now = time.perf_counter() if working else self.ended
        with self.lock:
            trainer = self.trainer
            steps = self.steps_before + (trainer.env_steps if trainer is not None else 0)
            self.seen.append((now, steps))
            while len(self.seen) > 2 and now - self.seen[0][0] > RATE_WINDOW_S:
                self.seen.popleft()
            elapsed, gained = now - self.seen[0][0], steps - self.seen[0][1]
        recent = gained / elapsed if gained and elapsed > 0 else math.nan
        left = (self.total - steps) * (now - self.started) / steps if steps else math.nan
        text = self.text or ("training" if steps else "setting up")
        return Status(self.state, self.job, steps, self.total, recent, left, self.mean_return, text)


def sentence(error: BaseException) -> str:
    """An exception as one line: the library's own messages as they are, others with their type."""
    first = str(error).strip().split("\n")[0]
    if type(error).__module__.startswith("rlbench") and first:
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
