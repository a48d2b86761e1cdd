"""What every trainer has: one loop around its iterations, with a log; acting, evaluating, stopping."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from rlbench.envs.source import EnvSource
from rlbench.machine import describe
from rlbench.phases import phase
from rlbench.speedups import Choices
from rlbench.trainers.arguments import check_weights, rows_to_act_on
from rlbench.trainers.evaluate import evaluate
from rlbench.trainers.history import History
from rlbench.trainers.interrupt import interrupt_calls
from rlbench.trainers.logbook import Logbook
from rlbench.trainers.memory import explain_out_of_memory


class Trainer(ABC):
    """Iterates until `total_timesteps`. A subclass says what an iteration is, and binds its parts in `__init__`.

    Attributes:
        title: the algorithm's name.
        log_numbers: what `read_log` gives at a log point, columns of the history.
    """

    title: ClassVar[str]
    log_numbers: ClassVar[tuple[str, ...]]
    config: Any
    choices: Choices
    device: torch.device
    source: EnvSource
    collector: Any
    make_eval_env: Callable[[], Any] | None
    precision: Any
    backend: AbstractContextManager
    trained: list[Tensor]  # the parameters that the trainer was built on, to see whether they are still the networks'
    iterations = env_steps = updates = 0
    compile_told = 0.0  # seconds of compilation that the histories so far have accounted for
    stopping = False
    progress: bool | None = False  # what the last `train` was told, for what an evaluation shows

    @abstractmethod
    def iterate(self, log: Logbook) -> None:
        """One iteration."""

    @abstractmethod
    def read_log(self) -> dict[str, float]:
        """The `log_numbers`, means since the last call; NaN where nothing came in."""

    @abstractmethod
    def check_data(self) -> None:
        """Asked when a loss is no number: refuse to go on where the env is to blame."""

    @abstractmethod
    def close_history(self, history: History) -> None:
        """Add what only this trainer counts."""

    @abstractmethod
    def describe_network(self) -> dict[str, Any]:
        """The network's kind, widths, parameters and operations."""

    @abstractmethod
    def greedy(self, obs: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        """The best legal actions (N,) int64 for observations (N, D) and masks (N, A) or None."""

    @property
    @abstractmethod
    def network(self) -> nn.Module:
        """What acts."""

    @property
    @abstractmethod
    def compile_s(self) -> float:
        """Seconds of compilation so far."""

    @property
    @abstractmethod
    def recompiles(self) -> int:
        """Compilations beyond the first of each function: there should be none."""

    def parameters(self) -> list[Tensor]:
        """The parameters of all networks, as they are now."""
        return list(self.network.parameters())

    @property
    def env_name(self) -> str:
        return self.collector.name

    def train(
        self,
        progress: bool | None = None,
        on_log: Callable[[dict], None] | None = None,
        tensorboard: str | None = None,
    ) -> History:
        """Train to `total_timesteps`, or until `stop()` or an interrupt, and evaluate the greedy policy.

        Called again after a stop it goes on from there; each call's History has the rows and seconds of that call alone.

        Args:
            progress: False hides it; None shows a bar on a terminal, a line every few seconds elsewhere.
            on_log: called at every log point with step, total, eta_s, sps, mean_return and the trainer's `log_numbers`.
            tensorboard: a folder for TensorBoard scalars.
        """
        check_weights(self)
        self.progress = progress
        log = Logbook(self, progress, on_log, tensorboard)
        with log, interrupt_calls(self.stop), explain_out_of_memory(self, log), self.precision.setting(), self.backend:
            with phase("python"):  # what no phase within it names
                while self.env_steps < self.config.total_timesteps and not self.stopping:
                    self.iterate(log)
                    log.step()
            return log.finish()

    def stop(self) -> None:
        """Ask a running `train` to finish its iteration and return; from any thread."""
        self.stopping = True

    def close(self) -> None:
        """End what the environments hold, such as processes; the trainer can still act and evaluate."""
        self.collector.close()

    def act(self, obs: np.ndarray, mask: np.ndarray | None = None) -> int | np.ndarray:
        """The greedy action for one observation, or an array of them for a batch, as the env numbers actions."""
        rows, legal, single = rows_to_act_on(obs, mask, self.collector.spec)
        actions = self.greedy(rows, legal) + self.collector.spec.first_action
        return int(actions[0]) if single else actions

    def evaluate(self, episodes: int, seed: int | None = None) -> list[float]:
        """Returns of the greedy policy on fresh envs, the same envs' seeds at every call; none after `stop()`."""
        if self.make_eval_env is None:
            return []
        seed = self.config.seed if seed is None else seed
        return evaluate(self.greedy, self.make_eval_env, episodes, seed, lambda: self.stopping)

    def new_history(self) -> History:
        choices = self.choices.in_use(self.config, self.device, self.source)
        machine, settings = describe(steal_interval_s=0).to_dict(), dataclasses.asdict(self.config)
        seed, network = self.config.seed, self.describe_network()
        return History(settings, choices, machine, network, seed, self.env_name, self.log_numbers)
