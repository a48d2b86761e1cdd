"""Whole trainings of PPO in interleaved rounds: every side once a round, one of them twice, in a random order, with one seed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.rounds import UnequalWork
from rlbench.config import PPOConfig
from rlbench.envs.source import env_source
from rlbench.random import Purpose, random_bits, to_below
from rlbench.results import Row
from rlbench.speedups import Choices
from rlbench.stats import bootstrap_interval, interquartile_mean
from rlbench.trainers.ppo import PPO

AGAIN = ", again"  # behind the name of a side that is trained twice


@dataclass(frozen=True)
class Training:
    """One training. `sps` counts env steps a second, updates included, after the first rollout and its updates."""

    env_steps: int
    updates: int  # of minibatches
    sps: float
    returns: tuple[float, ...] = ()  # of the final greedy policy, a game each


Side = Callable[[PPOConfig, int], Training]  # (config, seed)


def rollout_of(config: PPOConfig) -> int:
    """Samples in a rollout."""
    return config.num_envs * config.num_steps


def settings(rollouts: int, **changes: Any) -> PPOConfig:
    """A training of so many rollouts, with a row of the log after each, and nothing evaluated on the way or at the end."""
    config = PPOConfig(eval_episodes=0, anneal_lr=False, **changes)
    rollout = rollout_of(config)
    return config.replace(total_timesteps=rollouts * rollout, log_frequency=rollout)


def expected_updates(config: PPOConfig) -> int:
    """Updates that a config without a KL target asks for, counted here once more and not by any trainer."""
    rollout = rollout_of(config)
    return config.total_timesteps // rollout * config.update_epochs * -(-rollout // config.batch_size)


def ours(choices: Choices, game: Any, device: str = "cpu", games: int = 0) -> Side:
    """A side that trains with `choices`, and plays `games` games against `eval_opponent` afterwards."""

    def train(config: PPOConfig, seed: int) -> Training:
        trainer = PPO(config.replace(seed=seed), choices, game, device)
        history = trainer.train(progress=False)
        rows = history.to_frame()
        steps, seconds = (rows[name].to_numpy() for name in ("env_step", "seconds"))
        if len(rows) < 2:
            raise ValueError(f"total_timesteps={config.total_timesteps}: a rate needs two rollouts at least.")
        sps = (steps[-1] - steps[0]) / (seconds[-1] - seconds[0])
        returns = tuple(trainer.evaluate(games, seed)) if games else ()
        return Training(history.env_steps, history.updates, float(sps), returns)

    return train


def in_use(choices: Choices, config: PPOConfig, game: Any, device: str = "cpu") -> dict[str, str]:
    """The slots that such a training uses, with their variants."""
    source = env_source(game)
    return choices.usable(config, device, source).in_use(config, device, source)


def in_rounds(
    name: str,
    config: PPOConfig,
    sides: Mapping[str, Side],
    twice: str,
    rounds: int,
    on_run: Callable[[str], None] = lambda side: None,
) -> dict[str, list[Training]]:
    """Trainings of each side, one a round; round r has seed r. `twice` is trained again, for the control.

    Raises:
        UnequalWork: where env steps or updates are not those that the config asks for.
    """
    trainers = {**sides, again(twice): sides[twice]}
    names, order = list(trainers), np.random.default_rng(0)
    kept: dict[str, list[Training]] = {side: [] for side in names}
    for seed in range(rounds + 1):  # round 0 is the warm-up: imports, builds, caches; checked, not kept
        for i in order.permutation(len(names)):
            gc.collect()  # what one side leaves behind is not the next one's to clean up
            training = trainers[names[i]](config, seed)
            check_work(name, names[i], config, training)
            on_run(names[i])
            if seed:
                kept[names[i]].append(training)
    return kept


def again(side: str) -> str:
    return side + AGAIN


def check_work(name: str, side: str, config: PPOConfig, training: Training) -> None:
    wanted = {"env_steps": config.total_timesteps, "updates": expected_updates(config)}
    for what, count in wanted.items():
        if getattr(training, what) != count:
            raise UnequalWork(f"{name}: {side} did {what}={getattr(training, what)} where {count} were asked for.")


def seconds_of(trainings: Sequence[Training]) -> np.ndarray:
    """Seconds an env step, one a round. # (rounds,)"""
    return np.array([1.0 / training.sps for training in trainings])


def numbers_of(trainings: Sequence[Training]) -> Row:
    """The fields of a side that are its own."""
    row: Row = {
        "median_sps": float(np.median([training.sps for training in trainings])),
        "rounds": len(trainings),
        "round_sps": [training.sps for training in trainings],
        "env_steps": trainings[0].env_steps,
        "updates": trainings[0].updates,
    }
    if trainings[0].returns:
        means = np.array([np.mean(training.returns) for training in trainings])  # (rounds,)
        low, high = bootstrap_interval(means, interquartile_mean)
        row |= {"return_iqm": float(interquartile_mean(means)), "return_low": low, "return_high": high}
        row |= {"round_returns": means, "eval_episodes": len(trainings[0].returns)}
    return row


def mean_actions(game: Any, games: int = 64, steps: int = 128) -> float:
    """How many legal actions a state of random play has on average."""
    played = game.batched(games, 0, "cpu")
    _, legal = played.reset()
    index, total = torch.arange(games), 0
    for step in range(steps):
        total += len(legal.ids)
        k = to_below(random_bits(0, Purpose.ACTION, step, index), legal.counts)
        legal = played.step(legal.ids[legal.offsets[:-1] + k]).legal
    return total / (games * steps)
