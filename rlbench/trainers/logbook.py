"""The clock and the log of a training run: what is not the algorithm."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from rlbench.progress import Progress
from rlbench.timing import synchronize
from rlbench.trainers.finite import check_loss
from rlbench.trainers.schedule import Every

if TYPE_CHECKING:
    from rlbench.trainers.history import History

WARM_UP_UPDATES = 20
RECENT_EPISODES = 100


class Logbook:
    """Follows one `train()`: rows of the history, evaluations that are due, progress, callback, TensorBoard.

    Of a trainer it asks for its counters, for its `log_numbers` and their values (`read_log`), for `evaluate`, and at the end
    for its `network` and what `close_history` adds. The clock stands still during evaluations. `sps` counts after
    `learning_starts` and a few updates of warm-up.
    """

    def __init__(
        self, trainer: Any, progress: bool | None, on_log: Callable[[dict], None] | None, tensorboard: str | None
    ) -> None:
        self.trainer, self.config, self.on_log = trainer, trainer.config, on_log
        self.history: History = trainer.new_history()
        self.writer = _writer(tensorboard)
        self.first = trainer.env_steps
        self.log_due = Every(self.config.log_frequency, self.first)
        self.evaluation_due = Every(self.config.eval_frequency, self.first)
        self.recent: deque[float] = deque(maxlen=RECENT_EPISODES)
        self.progress = Progress(
            self.config.total_timesteps - self.first, f"{trainer.title} on {trainer.env_name}", "steps", progress
        )
        self.compiled_before = trainer.compile_s  # seconds, in its construction or in an earlier `train`
        self.start = self.total_start = time.perf_counter()
        self.paused = 0.0  # seconds in evaluations
        self.warm: tuple[int, float] | None = None  # env steps and seconds when the warm-up was over
        self.last = (trainer.env_steps, 0.0, trainer.updates)  # of the last row

    def __enter__(self) -> Logbook:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.progress.__exit__(kind, error, trace)
        if self.writer is not None:
            self.writer.close()

    def seconds(self) -> float:
        """Seconds of training so far, without compilation; the device has finished what they paid for."""
        synchronize(self.trainer.device)
        return self._elapsed()

    def _elapsed(self) -> float:
        compiling = self.trainer.compile_s - self.compiled_before
        return time.perf_counter() - self.start - self.paused - compiling

    def episodes(self, finished: list[tuple[float, int]]) -> None:
        """Note the (return, length) of episodes that ended in this step."""
        if finished:
            now = self._elapsed()
            for episode_return, length in finished:
                self.recent.append(episode_return)
                self.history.episode_rows.append((self.trainer.env_steps, now, episode_return, length))

    def episodes_at(self, finished: list[tuple[int, float, int]]) -> None:
        """Note the (env step, return, length) of episodes that ended in one call of several iterations."""
        now = self._elapsed()
        self.recent.extend(episode_return for _, episode_return, _ in finished)
        self.history.episode_rows.extend(
            (step, now, episode_return, length) for step, episode_return, length in finished
        )

    def room(self) -> int:
        """Env steps that a loop may take in one go before `step` is to be called: to the next row, evaluation or start of
        the rate's clock, or to the end; at least 1."""
        config, now = self.config, self.trainer.env_steps
        ends = [config.total_timesteps, self.log_due.next(now), self.evaluation_due.next(now)]
        if self.warm is None:
            rounds = -(-(WARM_UP_UPDATES - self.trainer.updates) // config.gradient_steps)
            every = config.train_frequency
            ends.append((max(now, self.trainer.learning_start) // every + rounds) * every)
        return max(1, min(end for end in ends if end is not None) - now)

    def step(self) -> None:
        """After each iteration: start the rate's clock, write a row, evaluate, where due."""
        trainer = self.trainer
        if self.warm is None and trainer.updates >= WARM_UP_UPDATES:
            self.warm = (trainer.env_steps, self.seconds())
        if self.log_due.crossed(trainer.env_steps):
            self.write_row()
        if self.evaluation_due.crossed(trainer.env_steps) and trainer.env_steps < self.config.total_timesteps:
            self.evaluate()

    def write_row(self) -> None:
        trainer, seconds = self.trainer, self.seconds()
        numbers = trainer.read_log()
        if trainer.updates > self.last[2]:
            if not math.isfinite(numbers["loss"]):
                trainer.check_data()
            check_loss(numbers["loss"], self.config, trainer.env_steps, trainer.updates)
        steps = trainer.env_steps - self.last[0]
        sps = steps / max(1e-9, seconds - self.last[1])
        self.last = (trainer.env_steps, seconds, trainer.updates)
        mean_return = statistics.fmean(self.recent) if self.recent else float("nan")
        noted = (numbers[name] for name in self.history.log_numbers)
        self.history.log_rows.append((trainer.env_steps, seconds, trainer.updates, *noted, sps, mean_return))
        self.progress.advance(steps, note=f"return {mean_return:.4g}" if self.recent else "")
        self._tell({**numbers, "sps": sps, "mean_return": mean_return})

    def _tell(self, scalars: dict[str, float]) -> None:
        step, total = self.trainer.env_steps, self.config.total_timesteps
        if self.writer is not None:
            for name, value in scalars.items():
                self.writer.add_scalar(f"{self.config.trainer}/{name}", value, step)
        if self.on_log is not None:
            eta = max(0, total - step) / max(1e-9, scalars["sps"])
            self.on_log({"step": step, "total": total, "eta_s": eta, **scalars})

    def evaluate(self) -> list[float]:
        """Returns of the greedy policy as it is now, and a row of them. Training's clock stands still."""
        seconds, began = self.seconds(), time.perf_counter()
        returns = self.trainer.evaluate(self.config.eval_episodes)
        self.paused += time.perf_counter() - began
        if returns:
            row = (self.trainer.env_steps, seconds, statistics.fmean(returns), statistics.pstdev(returns), len(returns))
            self.history.evaluation_rows.append(row)
        return returns

    def finish(self) -> History:
        """Close the books: the last row, the final policy's returns (not where training was stopped), the weights."""
        trainer, history = self.trainer, self.history
        if trainer.env_steps > self.last[0]:
            self.write_row()
        history.train_s = self.seconds()
        steps, since = self.warm if self.warm and self.warm[0] < trainer.env_steps else (self.first, 0.0)
        history.sps = (trainer.env_steps - steps) / max(1e-9, history.train_s - since)
        history.env_steps, history.updates = trainer.env_steps, trainer.updates
        history.returns = self.evaluate()
        trainer.close_history(history)
        history.interrupted, trainer.stopping = trainer.stopping, False
        history.weights = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)  # sync: at the end
            for name, tensor in trainer.network.state_dict().items()
        }
        # What was compiled before this run began is paid by the first run alone.
        history.compile_s, trainer.compile_told = trainer.compile_s - trainer.compile_told, trainer.compile_s
        history.recompiles, history.skipped_updates = (
            trainer.recompiles,
            int(trainer.apply_update.skipped),
        )  # sync: at the end
        before = history.compile_s - (trainer.compile_s - self.compiled_before)
        history.total_s = time.perf_counter() - self.total_start + before
        return history


def _writer(folder: str | None) -> Any:
    if folder is None:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise RuntimeError("TensorBoard is not installed: pip install tensorboard") from error
    return SummaryWriter(folder)
