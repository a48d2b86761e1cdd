"""What a side gives back from a training, and our own sides: the one trainer with the three named Choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.workloads import Workload
from rlbench.models import parameter_count
from rlbench.speedups import Choices
from rlbench.trainers.dqn import DQN


@dataclass(frozen=True)
class Run:
    """One training. `sps` counts env steps a second after `learning_starts` and the first 20 updates."""

    env_steps: int
    updates: int
    parameters: int  # trained scalars
    sps: float
    returns: tuple[float, ...]  # of the final greedy policy, an episode each


Side = Callable[[Workload, int], Run]  # (workload, seed)


def ours(choices: Choices) -> Side:
    """A side that trains with `choices`."""

    def train(workload: Workload, seed: int) -> Run:
        trainer = DQN(workload.config.replace(seed=seed), choices, workload.make_env)
        history = trainer.train(progress=False)
        parameters = parameter_count(trainer.online)
        return Run(history.env_steps, history.updates, parameters, history.sps, tuple(history.returns))

    return train


def our_sides(naive: bool = True) -> dict[str, Side]:
    return {name: ours(Choices.named(name)) for name in ("naive", "plain", "fast")[0 if naive else 1 :]}
