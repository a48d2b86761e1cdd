"""What watching costs: the clock with its sampler, and the trace, each beside the same training unwatched, in turns.

One warm training goes on in blocks, watched or not in a random order, so that both sides do the same; blocks are short, since the
machine is faster now and slower then. Seconds a step of the env count, after learning began; of the trace only those under
torch's profiler, without its start and the reading of what it saw. The clock's blocks share what it may look: together they are
one profile of a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from benchmarks import command
from benchmarks.blocks import ScriptInBlocks
from benchmarks.targets import judged
from benchmarks.text import aligned, interval
from rlbench.config import DQNConfig
from rlbench.machine import StealMeter, describe
from rlbench.profiling.session import Plan, Session
from rlbench.profiling.windows import ALLOWANCE_S, Windows
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.timing import compare
from rlbench.tuning.contender import Candidate, Contender

KIND = "benchmark-profile-overhead"
SCRIPT = Path(__file__).parent / "faults" / "dqn_by_hand.py"
ROUNDS, QUICK_ROUNDS = 200, 20
TRACE_EVERY = 8  # the trace takes so much that a round in so many is enough
BLOCK_S = 0.3  # of a training of ours
STEPS = 300  # of the script by hand
WORDS, WARM_UP = ("--seconds", "1e9"), 1000  # of it: it does not end by itself, and learns by then
CLOCK_TARGET, TRACE_TARGET = 1 / 1.02, 1 / 2.0  # times as fast, watched over unwatched, at least
CPU = torch.device("cpu")
SCRIPTS_DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # as the script chooses for itself


class Training(Protocol):
    """Some of a training, watched by `plan` or, without one, by nobody: seconds a step."""

    def __call__(self, plan: Plan | None) -> float: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Job:
    """`choices` of our DQN on CartPole, or "by hand"; and which pass watches it."""

    choices: str
    watched: str

    @property
    def name(self) -> str:
        return f"{self.choices}, {self.watched}"

    def rounds(self, asked: int) -> int:
        return max(2, asked // TRACE_EVERY) if self.watched == "trace" else asked

    @property
    def plan(self) -> Plan:
        """One pass from the first step of learning on: before, and for no time, the clock."""
        first, trace = (1e9, 0.0) if self.watched == "clock" else (1e-9, 1e9)
        return Plan(1e9, first, 0.0, trace, 0.0)


JOBS = tuple(Job(choices, watched) for choices in ("naive", "plain", "by hand") for watched in ("clock", "trace"))


class Continued(Windows):
    """Of a profile that goes on in the next block: where its looking has been done ahead, a block begins by looking away."""

    def look_s(self) -> float:
        ahead = self.looked_s and self.looked_s / self.share > self.all_s + ALLOWANCE_S
        return 0.0 if ahead else super().look_s()


def windows_of(session: Session) -> Windows:
    """For the next block, after a session on this."""
    windows = session.windows
    return windows if isinstance(windows, Continued) else Continued(windows.price_s)


def traced(session: Session) -> float:
    """Seconds a step under torch's profiler."""
    if not session.tracing.steps:
        raise RuntimeError("the training was over before its trace began: it needs more steps")
    return session.tracing.seconds / session.tracing.steps


class Ours:
    """One training, that names its phases itself."""

    def __init__(self, choices: str, block_s: float) -> None:
        config = DQNConfig.preset(
            "cartpole", total_timesteps=10**8, learning_starts=200, eval_episodes=0, eval_frequency=0
        )
        self.contender = Contender(Candidate(Choices.named(choices), 1, config, {}), "CartPole-v1", "cpu")
        self.contender.warm_up()
        self.block_s, self.windows = block_s, None

    def __call__(self, plan: Plan | None) -> float:
        if plan is None:
            steps, _, spent = self.contender.block(self.block_s)
            return spent / steps
        with Session(CPU, plan, find=False, windows=self.windows) as session:
            steps, _, spent = self.contender.block(self.block_s)
        self.windows = windows_of(session)
        return traced(session) if plan.trace else spent / steps

    def close(self) -> None:
        self.contender.close()


class ByHand:
    """The script that uses no rlbench: its phases are found."""

    def __init__(self, steps: int) -> None:
        self.script, self.steps, self.windows = ScriptInBlocks(str(SCRIPT), WORDS, WARM_UP), steps, None

    def __call__(self, plan: Plan | None) -> float:
        if plan is None:
            return self.script.block(self.steps)[0] / self.steps
        spent, session = self.script.block(self.steps, lambda: Session(SCRIPTS_DEVICE, plan, windows=self.windows))
        self.windows = windows_of(session)
        return traced(session) if plan.trace else spent / self.steps

    def close(self) -> None:
        self.script.close()


def measure(job: Job, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """One row: how many times as fast the watched training is."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    if job.choices == "by hand":
        train: Training = ByHand(STEPS)
    else:
        train = Ours(job.choices, BLOCK_S)
    times: dict[str, list[float]] = {"plain": [], "again": [], "watched": []}
    order = np.random.default_rng(0)
    for done in range(-1, rounds):
        for name in order.permutation(list(times)):
            spent = train(job.plan if name == "watched" else None)
            if done >= 0:
                times[name].append(spent)
        on_unit(job.name)
    train.close()
    plain, again, watched = (np.array(times[name]) for name in ("plain", "again", "watched"))
    target = CLOCK_TARGET if job.watched == "clock" else TRACE_TARGET
    fields: dict[str, Any] = {"job": job.name, "rounds": rounds, "quick": quick, "step_seconds": times}
    fields |= judged(compare(plain, watched, again), target)
    device = SCRIPTS_DEVICE if job.choices == "by hand" else CPU
    return [new_row(KIND, device=device, seeds=[1], machine=machine, meter=meter, **fields)]


def table(rows: Sequence[Row]) -> str:
    """A line a job."""
    head = ("job", "watched takes", "95 % interval", "A/A band", "target")
    lines = []
    for row in rows:
        takes = f"{1 / row['ratio']:.3f} times"
        span, band = interval(1 / row["ratio_high"], 1 / row["ratio_low"]), interval(row["aa_low"], row["aa_high"])
        met = "too few rounds" if row["met"] is None else "met" if row["met"] else "MISSED"
        lines.append((row["job"], takes, span, band, f"at most {1 / row['target']:.2f}: {met}"))
    return aligned(head, lines, {0, 4}, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    options = command.parse(
        command.make_parser("profile_overhead", __doc__), arguments, rounds=ROUNDS, quick_rounds=QUICK_ROUNDS
    )
    jobs = command.choose(JOBS, options.only)

    def work(job: Job, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, job.rounds(options.rounds), options.quick, on_unit)

    return command.run(options, jobs, sum(job.rounds(options.rounds) + 1 for job in jobs), work, table)


if __name__ == "__main__":
    sys.exit(main())
