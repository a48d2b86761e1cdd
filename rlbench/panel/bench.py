"""The panel's logic without its face: what is chosen, whether it can run, and the work that it starts.

`widgets.Panel` shows it; tests and scripts use it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from rlbench.config import ConfigError, DQNConfig
from rlbench.envs.make import factory_of, is_vector
from rlbench.envs.source import EnvSource, env_source
from rlbench.machine import resolve_device
from rlbench.panel.comparison import SELECTED, Comparison, paired_rounds, rounds_of, trainings_of
from rlbench.panel.lines import command_line, env_name, notebook_lines
from rlbench.panel.selection import Selection
from rlbench.panel.work import Status, Stopped, Work
from rlbench.speedups import ChoiceError, Choices
from rlbench.workloads import Workload
from rlbench.workloads import workload as named_workload

RUN_COLUMNS = ("choices", "steps", "sps", "train_s", "mean_return", "episodes", "note")


class Bench(Selection):
    """Choices for one workload on one env, short trainings under them, and a ladder of ratios against plain.

    Args:
        workload: a trainer's name ("dqn").
        env: a name as `--env` takes it ("CartPole-v1", "trading", "module:factory"), a factory, or an env.
        choices: Choices, a mapping of slot to variant, naive, plain or fast, "slot=variant,...", or None for plain.
        slots: the slots to show; all of the workload's where left out.
        config: a config, or a mapping of settings that differ from the env's preset.
        steps: env steps of a training; replaces the config's `total_timesteps`.
        device: "cpu", "cuda", "cuda:N" or "auto".
        rounds: paired rounds of a comparison.
        notebook: the notebook that the lines to copy run.

    Raises:
        ChoiceError, ConfigError: for names, settings and types that do not exist.
    """

    def __init__(
        self,
        workload: str = "dqn",
        env: Any = "CartPole-v1",
        choices: Choices | Mapping[str, str] | str | None = None,
        slots: Sequence[str] | None = None,
        config: DQNConfig | Mapping[str, Any] | None = None,
        steps: int = 5_000,
        device: str = "cpu",
        rounds: int = 20,
        notebook: str = "03_replay_buffer",
    ) -> None:
        known = named_workload(env) if isinstance(env, str) else Workload(env_name(env) or "env", *_envs_of(env))
        self.preset = known.config()
        settings = config if isinstance(config, DQNConfig) else known.config(**dict(config or {}))
        settings, where = settings.replace(total_timesteps=steps), resolve_device(device)
        super().__init__(workload, choices, slots, settings, where, _source_of(known.env))
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise ConfigError(f"rounds must be a whole number of at least 1, not {rounds!r}.")
        self.env, self.rounds, self.notebook = env, rounds, notebook
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
        return self._start("run", self.config.total_timesteps, lambda work: self._run(work, choices, label))

    def compare(self, on_round: Callable[[Comparison], None] = lambda comparison: None) -> Work:
        """Compare with plain in a thread; from its first round on it is one of `comparisons`."""
        comparison = Comparison(self._new_label(), self.in_use(), self.config.total_timesteps)
        total = trainings_of(self.rounds) * self.config.total_timesteps
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
            history, _ = work.train(self.config.replace(seed=seed), choices if side == SELECTED else plain)
            return None if work.asked.is_set() else (history.train_s, history.log_rows[-1][-1])

        def after(done: Comparison) -> None:
            if done.rounds == 1:
                self.comparisons.append(done)
            work.text = f"round {done.rounds} of {self.rounds}"
            on_round(done)

        work.text = "warming up"
        paired_rounds(comparison, train_once, self.rounds, self.config.seed, after)
        return verdict_sentence(comparison)

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
        return f"{self.workload.upper()} on {name} · {self.config.total_timesteps:,} steps · {self.device}"

    @property
    def advice(self) -> str:
        """What the choices are, and what to do with them."""
        if self.name == "plain":
            return "plain is the baseline: choose something else, then Compare it with plain."
        return f"{self.label}: Run trains once; Compare makes {rounds_of(self.rounds)} of trainings beside plain."

    def lines(self) -> tuple[str, str, str]:
        """The lines that reproduce this state: the command line, papermill's, the report's."""
        return (self.command_line(), *self.notebook_lines())

    def command_line(self) -> str:
        """`rlbench train ...` that trains as Run does."""
        changed = [word for slot, variant in self.changes().items() for word in ("--set", f"{slot}={variant}")]
        choices = ["--choices", self.name] if self.name else ["--choices", "plain", *changed]
        return command_line(self.workload, self.env, self.config, self.preset, choices, str(self.device))

    def notebook_lines(self) -> tuple[str, str]:
        """(papermill's line, `rlbench report`'s line) with those of this state's values that the notebook declares."""
        env = self.env if isinstance(self.env, str) else None
        values = {"env": env, "steps": self.config.total_timesteps, "seed": self.config.seed, "rounds": self.rounds}
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


def _envs_of(env: Any) -> tuple[Any, Any]:
    """What to train and to evaluate on. A single env is copied for each, so that no training leaves a trace in it."""
    make = factory_of(env)
    return (env if is_vector(env) else make), make


def _source_of(env: Any) -> EnvSource | None:
    """What the env is, which may bar some variants; None where it cannot be made, which Run says in its time."""
    try:
        return env_source(env)
    except Exception:  # whatever a reader's factory raises
        return None


_last: list[Bench] = []  # the bench that started work last: two at once would disturb each other's times


def _end_others(bench: Bench) -> None:
    """Stop what another bench still does; running a cell again leaves its old panel without a Stop button."""
    for other in _last:
        if other is not bench:
            other.stop()
            other.wait()
    _last[:] = [bench]
