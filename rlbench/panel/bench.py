"""The panel's logic without its face: what is chosen, whether it can run, and the work that it starts.

`widgets.Panel` shows it; tests and scripts use it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import pandas as pd

from rlbench.config import Config, ConfigError
from rlbench.machine import resolve_device
from rlbench.panel.comparison import SELECTED, Comparison, paired_rounds, rounds_of, trainings_of
from rlbench.panel.given import source_of, trainer_of, workload_of
from rlbench.panel.lines import command_line, env_name, notebook_lines, python_lines
from rlbench.panel.selection import Selection
from rlbench.panel.work import Status, Stopped, Work
from rlbench.speedups import ChoiceError, Choices
from rlbench.trainers.history import History
from rlbench.trainers.trainer import Trainer

NOTEBOOKS = {"dqn": "03_replay_buffer", "ppo": "10_variable_actions"}  # whose lines to copy are told, by trainer
RUN_COLUMNS = ("choices", "steps", "sps", "train_s", "mean_return", "episodes", "note")


class Bench(Selection):
    """Choices for one workload on one env, short trainings under them, and a ladder of ratios against plain.

    Args:
        workload: a trainer's name, "dqn" or "ppo"; where left out, the config's, or "dqn".
        env: a name as `--env` takes it ("CartPole-v1", "trading", "othello4", "module:factory"), a factory, an env or a game.
        choices: Choices, a mapping of slot to variant, naive, plain or fast, "slot=variant,...", or None for plain.
        slots: the slots to show; all of the workload's where left out.
        config: a `DQNConfig` or `PPOConfig`, or a mapping of settings that differ from the env's preset.
        steps: env steps of a training; replaces the config's `total_timesteps`.
        device: "cpu", "cuda", "cuda:N" or "auto".
        rounds: paired rounds of a comparison.
        notebook: the notebook that the lines to copy run; one of the trainer's where left out.

    Raises:
        ChoiceError, ConfigError: for names, settings and types that do not exist.
    """

    def __init__(
        self,
        workload: str | None = None,
        env: Any = "CartPole-v1",
        choices: Choices | Mapping[str, str] | str | None = None,
        slots: Sequence[str] | None = None,
        config: Config | Mapping[str, Any] | None = None,
        steps: int = 5_000,
        device: str = "cpu",
        rounds: int = 20,
        notebook: str | None = None,
    ) -> None:
        workload, known = trainer_of(workload, config), workload_of(env)
        self.preset_name, self.preset = known.preset_for(workload), known.config(trainer=workload)
        settings = config if isinstance(config, Config) else known.config(trainer=workload, **dict(config or {}))
        settings, where = settings.replace(total_timesteps=steps), resolve_device(device)
        super().__init__(workload, choices, slots, settings, where, source_of(known.env))
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise ConfigError(f"rounds must be a whole number of at least 1, not {rounds!r}.")
        self.env, self.rounds, self.notebook = env, rounds, notebook or NOTEBOOKS[workload]
        self.train_env, self.make_eval_env = known.env, known.eval_env or known.env
        self.runs: list[dict[str, Any]] = []
        self.comparisons: list[Comparison] = []
        self.work: Work | None = None

    @property
    def working(self) -> bool:
        return self.work is not None and self.work.state == "working"

    def status(self) -> Status:
        return self.work.status() if self.work else Status()

    def run(self) -> Work:
        """Train in a thread, then evaluate; the outcome is a row of `runs`, stopped or not."""
        choices, label = self.choices, self.label
        return self._start("run", self.steps, lambda work: self._run(work, choices, label))

    def compare(self, on_round: Callable[[Comparison], None] = lambda comparison: None) -> Work:
        """Compare with plain in a thread; from its first round on it is one of `comparisons`."""
        comparison = Comparison(self._new_label(), self.in_use(), self.steps)
        total = trainings_of(self.rounds) * self.steps
        choices = self.choices
        return self._start("compare", total, lambda work: self._compare(work, choices, comparison, on_round))

    def stop(self) -> None:
        """Ask the work to end; what it has found is kept."""
        if self.work is not None:
            self.work.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """True once no work is going on."""
        return self.work is None or self.work.wait(timeout)

    def _start(self, job: str, total: int, run: Callable[[Work], str]) -> Work:
        problem = self.problem()
        if problem:
            raise ChoiceError(problem)
        if self.work is not None and self.working:
            raise RuntimeError(f"the panel is at work ({self.work.job}): stop it first.")
        _end_others(self)
        self.work = Work(job, self.train_env, str(self.device), total, run).start()
        return self.work

    def _run(self, work: Work, choices: Choices, label: str) -> str:
        history, trainer = work.train(self.config, choices)
        note = f"stopped at {history.env_steps:,} steps" if work.asked.is_set() else ""
        if not note:
            work.text = f"evaluating the policy over {self.config.eval_episodes} episodes"
            try:
                history.returns = work.evaluate(self.config, trainer, self.make_eval_env)
            except Stopped:
                note = "evaluation stopped"
        values = (history.env_steps, history.sps, history.train_s, history.mean_return, history.eval_episodes, note)
        self.runs.append(dict(zip(RUN_COLUMNS, (label, *values), strict=True)))
        tail = (
            f", mean return {history.mean_return:.4g} over {history.eval_episodes} episodes" if history.returns else ""
        )
        return f"{label}: {history.sps:,.0f} steps/s{tail}{'; ' + note if note else ''}."

    def _compare(
        self, work: Work, choices: Choices, comparison: Comparison, on_round: Callable[[Comparison], None]
    ) -> str:
        plain = Choices.plain(self.device)

        def train_once(side: str, seed: int) -> tuple[float, float] | None:
            config = self.config.replace(seed=seed)
            history, trainer = work.train(config, choices if side == SELECTED else plain)
            if work.asked.is_set():
                return None
            try:
                return history.train_s, self._return_of(work, config, trainer, history)
            except Stopped:
                return None

        def after(done: Comparison) -> None:
            if done.rounds == 1:
                self.comparisons.append(done)
            work.text = f"round {done.rounds} of {self.rounds}"
            on_round(done)

        work.text = "warming up"
        paired_rounds(comparison, train_once, self.rounds, self.config.seed, after)
        return verdict_sentence(comparison)

    def _return_of(self, work: Work, config: Config, trainer: Trainer, history: History) -> float:
        """What a training reached. In self-play its own episodes say nothing of it: what one side wins, the other loses."""
        game = trainer.source.game
        if game is None or not game.alternating or not config.eval_episodes:
            return float(history.to_frame()["mean_return"].iloc[-1])
        return fmean(work.evaluate(config, trainer, None))

    @property
    def steps(self) -> int:
        """Env steps of a training: PPO makes whole rounds."""
        total = self.config.total_timesteps
        if self.workload != "ppo":
            return total
        envs = (self.source.num_envs if self.source else None) or self.config.num_envs
        return -(-total // (envs * self.config.num_steps)) * envs * self.config.num_steps

    def _new_label(self) -> str:
        """The label, numbered from the second comparison of the same choices on."""
        before = sum(one.variants == self.in_use() for one in self.comparisons)
        return f"{self.label} ({before + 1})" if before else self.label

    def run_table(self) -> pd.DataFrame:
        """One row a run; `mean_return` is that of the final policy over `episodes` episodes."""
        return pd.DataFrame(self.runs, columns=list(RUN_COLUMNS))

    def table(self) -> pd.DataFrame:
        """One row a comparison: the ratio against plain, its interval, the A/A band, the verdict, both returns."""
        columns = list(Comparison("", {}, 1).row())
        return pd.DataFrame([one.row() for one in self.comparisons], columns=columns)

    @property
    def title(self) -> str:
        """What is trained, on what, for how long, where."""
        name = env_name(self.env) or "an env of this notebook"
        return f"{self.workload.upper()} on {name} · {self.steps:,} steps · {self.device}"

    @property
    def advice(self) -> str:
        """What the choices are, and what to do with them."""
        if self.name == "plain":
            return "plain is the baseline: choose something else, then Compare it with plain."
        return f"{self.label}: Run trains once; Compare makes {rounds_of(self.rounds)} of trainings beside plain."

    def lines(self) -> tuple[str, str, str, str]:
        """The lines that reproduce this state: the command line, Python's, papermill's, the report's."""
        return (self.command_line(), self.python_lines(), *self.notebook_lines())

    def command_line(self) -> str:
        """`rlbench train ...` that trains as Run does."""
        changed = [word for slot, variant in self.changes().items() for word in ("--set", f"{slot}={variant}")]
        choices = ["--choices", self.name] if self.name else ["--choices", "plain", *changed]
        return command_line(self.workload, self.env, self.config, self.preset, choices, str(self.device))

    def python_lines(self) -> str:
        """`rlbench.DQN(...).train()` or `rlbench.PPO(...).train()`, which trains as Run does."""
        changed = ", ".join(f"{slot}={variant!r}" for slot, variant in self.changes().items())
        where = "" if self.name == "naive" or self.device.type == "cpu" else repr(str(self.device))
        choices = f".{self.name}({where})" if self.name else f".plain({where}).replace({changed})"
        preset = (self.preset_name, self.preset)
        return python_lines(self.workload, self.env, self.config, preset, choices, str(self.device))

    def notebook_lines(self) -> tuple[str, str]:
        """(papermill's line, `rlbench report`'s line) with those of this state's values that the notebook declares."""
        values = {
            "env": env_name(self.env),
            "steps": self.config.total_timesteps,
            "seed": self.config.seed,
            "rounds": self.rounds,
        }
        values |= {"choices": self.label.replace(" ", ""), **self.in_use()}
        return notebook_lines(self.notebook, {name: value for name, value in values.items() if value is not None})


def verdict_sentence(comparison: Comparison) -> str:
    """What a comparison says, with the return beside the speed."""
    if not comparison.rounds:
        return f"{comparison.label}: stopped before a round was complete, nothing to show."
    row = comparison.row()
    numbers = f"{row['ratio']:.3f}x plain [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}], {row['verdict']}"
    returns = f"return {row['mean_return']:.4g} against {row['plain_return']:.4g}"
    note = f" ({comparison.note})" if comparison.note else ""
    return f"{comparison.label}: {numbers}; {returns}; {rounds_of(comparison.rounds)}{note}."


_last: list[Bench] = []  # the bench that started work last: two at once would disturb each other's times


def _end_others(bench: Bench) -> None:
    """Stop what another bench still does; running a cell again leaves its old panel without a Stop button."""
    for other in _last:
        if other is not bench:
            other.stop()
            other.wait()
    _last[:] = [bench]
