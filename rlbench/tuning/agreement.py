"""Whether a candidate learns what plain() learns: the same training by both, from the same seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlbench.speedups import Choices
from rlbench.trainers.make import make_trainer
from rlbench.tuning.candidates import settings_of
from rlbench.tuning.contender import BlockLog, Candidate, train

UPDATES = 12  # few, so that rounding has not yet changed an action
MOST = 0.05  # distance of the weights, as a share of how far plain() moved them
EPISODES = 10


@dataclass
class Agreement:
    """Trainings of a few updates, for their weights; those of plain() are made once for each length.

    Attributes:
        plain: what all are compared with.
    """

    plain: Candidate
    env: Any
    device: str
    made: dict[Any, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def distance(self, candidate: Candidate) -> float:
        """How far apart the networks are after a few updates, over how far plain() moved its own; 0 for the same to the last bit.

        Infinite where a weight is no number, and where plain() learnt nothing.
        """
        config, steps = short(self.plain.config, whole=bool(candidate.compiled))
        if config not in self.made:
            self.made[config] = weights_after(self.plain, config, steps, self.env, self.device)
        start, expected = self.made[config]
        changes = settings_of(candidate.config, self.plain.config)
        _, ours = weights_after(candidate, config.replace(**changes), steps, self.env, self.device)
        moved, apart = (expected - start).norm().item(), (ours - expected).norm().item()
        if moved == 0:  # which shows nothing, unless nothing was to be learnt
            return 0.0 if apart == 0 and config.learning_rate == 0 else math.inf
        return apart / moved if math.isfinite(apart) else math.inf


def distances(config: Any, others: Mapping[str, Choices], plain: Choices, env: Any, device: str) -> dict[str, float]:
    """`Agreement.distance` of each of some named Choices, under this process's number of threads."""
    threads, base = torch.get_num_threads(), plain.to_dict().items()
    agreement = Agreement(Candidate(plain, threads, config, {}), env, device)
    changed = {name: dict(choices.to_dict().items() - base) for name, choices in others.items()}
    return {name: agreement.distance(Candidate(others[name], threads, config, changed[name])) for name in others}


def short(config: Any, whole: bool = False) -> tuple[Any, int]:
    """Settings that soon begin to learn, all else and all schedules alike, and env steps in which there are a few updates.

    Args:
        whole: keep PPO's rollouts as long as they are, so that nothing is compiled for other sizes.
    """
    if config.trainer == "ppo":
        length = config.num_steps if whole else min(config.num_steps, 16)
        steps, change = length * config.num_envs, {"num_steps": length}
    else:
        starts = min(config.learning_starts, 4 * config.batch_size)
        rounds = -(-UPDATES // config.gradient_steps)
        steps = starts + rounds * max(config.train_frequency, config.num_envs) + config.num_envs
        change = {"learning_starts": starts}
    total = max(config.total_timesteps, 4 * steps)
    return config.replace(**change, total_timesteps=total, eval_episodes=0, eval_frequency=0), steps


def weights_after(candidate: Candidate, config: Any, steps: int, env: Any, device: str) -> tuple[Tensor, Tensor]:
    """The network's weights before and after so many env steps, as vectors on the host."""
    torch.set_num_threads(candidate.threads)
    trainer = make_trainer(config, candidate.choices, env, device)
    before, log = _vector(trainer), BlockLog(trainer, False, None, None)

    def enough() -> bool:
        log.most = steps - trainer.env_steps
        return log.most <= 0

    enough()
    train(trainer, log, enough)
    after = _vector(trainer)
    trainer.close()
    return before, after


def _vector(trainer: Any) -> Tensor:
    return torch.cat([p.detach().reshape(-1).double().cpu().clone() for p in trainer.network.parameters()])


def mean_return(candidate: Candidate, env: Any, device: str, steps: int, eval_env: Any = None) -> float | None:
    """Of the greedy policy after so many env steps, over a few episodes of one seed; None where nothing is evaluated."""
    config = candidate.config.replace(
        total_timesteps=steps, eval_frequency=0, eval_episodes=min(EPISODES, candidate.config.eval_episodes)
    )
    torch.set_num_threads(candidate.threads)
    trainer = make_trainer(config, candidate.choices, env, device, eval_env)
    history = trainer.train(progress=False)
    trainer.close()
    return history.mean_return if config.eval_episodes and not history.interrupted else None
