"""What the coming iterations will do, one operation after another, worked out before any of it is done.

Where every env gives one transition a step, counters do not depend on what happens: the plan of many iterations is arithmetic.
Loops that run several in one call follow it; it says the same as `update_points` and `Every` say one iteration at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlbench.config import DQNConfig
from rlbench.trainers.schedule import learning_start

COLLECT, UPDATE, SYNC = 0, 1, 2  # the numbers that dqn_loop.c knows


class Plan(NamedTuple):
    """K operations; those that fall on one env step are updates first, then target syncs, then the next collection."""

    operation: np.ndarray  # (K,) int64: COLLECT, UPDATE or SYNC
    argument: np.ndarray  # (K,) float64: exploration rate of a collection, step size of an update, else 0
    iterations: int
    env_steps: int  # counter after the last
    updates: int  # in all of them
    syncs: int


def make_plan(config: DQNConfig, num_envs: int, env_steps: int, last_sync: int, iterations: int) -> Plan:
    """The next `iterations` from the counter `env_steps` on.

    Args:
        last_sync: the env step up to which target syncs have been done.
    """
    starts = env_steps + num_envs * np.arange(iterations)  # of each iteration, (I,)
    end = env_steps + num_envs * iterations
    points = multiples(config.train_frequency, max(env_steps, learning_start(config, num_envs)), end)
    points = np.repeat(points, config.gradient_steps)
    syncs = multiples(config.target_network_frequency, last_sync, end)
    now = env_steps - (env_steps - points) // num_envs * num_envs  # counter while the updates of a point are done
    times = np.concatenate((starts, points, syncs))
    rank = np.concatenate((np.full(len(starts), 2), np.zeros(len(points), np.int64), np.ones(len(syncs), np.int64)))
    kind = np.concatenate((np.full(len(starts), COLLECT), np.full(len(points), UPDATE), np.full(len(syncs), SYNC)))
    argument = np.concatenate((epsilon_at(config, starts), learning_rate_at(config, now), np.zeros(len(syncs))))
    order = np.argsort(times * 3 + rank, kind="stable")
    return Plan(kind[order], argument[order], iterations, end, len(points), len(syncs))


def multiples(period: int, after: int, until: int) -> np.ndarray:
    """The multiples of `period` in (after, until], int64."""
    return np.arange(after // period + 1, until // period + 1, dtype=np.int64) * period


def linear_at(start: float, end: float, duration: float, steps: np.ndarray) -> np.ndarray:
    """`schedule.linear` for many env steps at once."""
    falling = start + (end - start) * steps / max(duration, 1e-300)
    return np.where(steps >= duration, end, falling)


def epsilon_at(config: DQNConfig, steps: np.ndarray) -> np.ndarray:
    """Exploration rates at env steps."""
    return linear_at(config.start_e, config.end_e, config.exploration_fraction * config.total_timesteps, steps)


def learning_rate_at(config: DQNConfig, steps: np.ndarray) -> np.ndarray:
    """Step sizes of Adam at env steps."""
    if not config.anneal_lr:
        return np.full(len(steps), config.learning_rate)
    return linear_at(config.learning_rate, 0.0, config.total_timesteps, steps)
