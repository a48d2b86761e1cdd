"""A training of ours under the profile: phases by the trainer's own names, the parts of a fused call beside them."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from typing import Any

from rlbench.machine import resolve_device
from rlbench.profiling.block import fill
from rlbench.profiling.evidence import TrainerRun
from rlbench.profiling.gather import evidence_of, phase_times
from rlbench.profiling.records import PhaseTime, Work
from rlbench.profiling.report import Report
from rlbench.profiling.session import Plan, Session
from rlbench.progress import Progress
from rlbench.speedups import Choices
from rlbench.trainers.make import make_trainer

FUSED = ("iterations", "update")  # phases that are many parts in one call
NATIVE = (
    "The loop is native code, which starts no operators that could be counted: its arithmetic is that of the layers' sizes, its "
    "bytes are not measured."
)
PARTS_SHARE = 0.25  # of the time, for the run that shows a fused call's parts


def profile_trainer(
    config: Any,
    choices: Choices | None = None,
    env: Any = "CartPole-v1",
    device: str = "cpu",
    seconds: float = 20.0,
    *,
    threads: bool = True,
    progress: bool | None = None,
) -> Report:
    """Train for `seconds` by these settings and report; trainings shorter than that are begun anew, with the next seed.

    Evaluations are left out. A training that is longer is seen from its start, so that it explores more than later on; the
    report says how far it came. Where an update, or a whole iteration, is one call, its parts are those of a second, shorter
    run with `loop="python"` or the eager update.

    Args:
        config, choices, env, device: as for `DQN` and `PPO`.
        threads: try other numbers of torch threads for some of the time.
    """
    config = config.replace(eval_episodes=0, **({"eval_frequency": 0} if hasattr(config, "eval_frequency") else {}))
    where = resolve_device(device)
    plan = Plan.within(seconds, threads)
    with Progress(round(seconds), "profile", "s", progress) as bar:
        watched = _Watched(config, choices, env, str(where), bar)
        session = watched.run(plan, seconds)
        parts = watched.parts(session, PARTS_SHARE * seconds)
    trainer = watched.trainer
    run = TrainerRun(config.trainer, config, trainer.choices, trainer.source, str(where))
    extra = watched.work(session)
    evidence = evidence_of(session, config.trainer, trainer.env_name, run=run, extra_work=extra, parts=parts)
    report = Report()
    fill(report, session, dataclasses.replace(evidence, notes=(*evidence.notes, *watched.notes)))
    return report


class _Watched:
    """Trainings one after the other until the time is up, on one session."""

    def __init__(self, config: Any, choices: Choices | None, env: Any, device: str, bar: Progress) -> None:
        self.config, self.choices, self.env, self.device, self.bar = config, choices, env, device, bar
        self.trainer = self._make(config, choices)
        self.before = (0, 0)  # steps and updates of trainings that are over
        self.over = False
        self.notes: list[str] = []

    def _make(self, config: Any, choices: Choices | None) -> Any:
        return make_trainer(config, choices, self.env, self.device)

    def run(self, plan: Plan, seconds: float) -> Session:
        trainings = 0

        def stop() -> None:
            self.over = True
            self.trainer.stop()

        with Session(
            self.trainer.device, plan, deadline_s=seconds, over=stop, counter=self.count, find=False
        ) as session:
            session.counting.counter = self.count
            while not self.over:
                if trainings:
                    self._renew(trainings)
                trainings += 1
                with closing(self.trainer):
                    self.trainer.train(progress=False)
        self.bar.advance(round(seconds))
        done, total = self.trainer.env_steps, self.config.total_timesteps
        if trainings == 1:
            self.notes.append(f"Profiled env steps 0 to {done:,} of {total:,}.")
        else:
            self.notes.append(f"Profiled {trainings} trainings of {total:,} env steps, each with a seed of its own.")
        if self.trainer.choices.loop == "native" and session.clock.totals.counts.get("iterations"):
            self.notes.append(NATIVE)
        return session

    def _renew(self, trainings: int) -> None:
        """The next training, where the last one is over before the time is."""
        steps, updates = self.count()
        self.before = (steps, updates)
        self.trainer = self._make(self.config.replace(seed=self.config.seed + trainings), self.choices)

    def count(self) -> tuple[int, int]:
        """Calls of the envs' step and updates, of all trainings."""
        steps, updates = self.before
        return steps + self.trainer.env_steps // self.config.num_envs, updates + self.trainer.updates

    def parts(self, session: Session, seconds: float) -> tuple[PhaseTime, ...]:
        """Phases of the largest fused call, from a run in which it is none."""
        spent = session.clock.totals.seconds({})
        fused = max((name for name in FUSED if spent.get(name)), key=lambda name: spent[name], default=None)
        if fused is None:
            return ()
        apart = {"loop": "python"} if fused == "iterations" else {self._update_slot(): "eager"}
        other = _Watched(self.config, self.trainer.choices.replace(**apart), self.env, self.device, self.bar)
        told = other.run(Plan(0.3 * seconds, seconds, 0.0, 0.0, 0.0), seconds)
        wall = sum(each.spent for each in told.clock_passes())
        return tuple(dataclasses.replace(part, part_of=fused) for part in phase_times(told, wall))

    def _update_slot(self) -> str:
        return "update" if self.config.trainer == "dqn" else "ppo_update"

    def work(self, session: Session) -> tuple[Work, ...]:
        """Arithmetic of a step in calls that no dispatcher sees: native code, compiled loops."""
        network, steps = self.trainer.describe_network(), session.steps
        if not steps:
            return ()
        spent, each = session.clock.totals.seconds({}), session.updates / steps
        of_updates = network["update_flops"] * each
        acting = network["forward_flops"] * self.config.num_envs
        found = {"update": of_updates, "iterations": of_updates + acting}
        return tuple(Work(name, round(flops), 0, 0) for name, flops in found.items() if spent.get(name))
