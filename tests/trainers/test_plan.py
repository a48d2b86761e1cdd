"""The plan says what the loop does one iteration at a time."""

import numpy as np
import pytest

from rlbench.config import DQNConfig
from rlbench.trainers.plan import COLLECT, SYNC, UPDATE, make_plan, multiples
from rlbench.trainers.schedule import Every, linear, update_points


def test_hand_worked():
    """Two envs, an update every 3 env steps after 4, a sync every 4 after 4: the steps are 2, 4, 6, 8."""
    config = DQNConfig(num_envs=2, train_frequency=3, learning_starts=4, target_network_frequency=4, total_timesteps=8)
    plan = make_plan(config, 2, 0, 4, 4)
    assert plan.operation.tolist() == [COLLECT, COLLECT, COLLECT, UPDATE, COLLECT, SYNC]
    assert plan.argument[:3].tolist() == [1.0, 1.0 - 0.95 * 2 / 4, 0.05]
    assert (plan.iterations, plan.env_steps, plan.updates, plan.syncs) == (4, 8, 1, 1)


def test_multiples():
    assert multiples(5, 0, 15).tolist() == [5, 10, 15]
    assert multiples(5, 5, 9).tolist() == []
    assert multiples(1, 7, 9).tolist() == [8, 9]


def one_at_a_time(config: DQNConfig, iterations: int) -> list[tuple[int, float]]:
    """The loop of the trainer, noting what it does."""
    done, steps, syncs = [], 0, Every(config.target_network_frequency, config.learning_starts)
    for _ in range(iterations):
        duration = config.exploration_fraction * config.total_timesteps
        done.append((COLLECT, linear(config.start_e, config.end_e, duration, steps)))
        before, steps = steps, steps + config.num_envs
        rate = config.learning_rate
        rate = linear(rate, 0.0, config.total_timesteps, steps) if config.anneal_lr else rate
        for point in update_points(before, steps, config.learning_starts, config.train_frequency):
            done += [(SYNC, 0.0)] * syncs.crossed(point - 1)
            done += [(UPDATE, rate)] * config.gradient_steps
            done += [(SYNC, 0.0)] * syncs.crossed(point)
        done += [(SYNC, 0.0)] * syncs.crossed(steps)
    return done


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_one_iteration_at_a_time(seed):
    rng = np.random.default_rng(seed)
    config = DQNConfig(
        total_timesteps=int(rng.integers(50, 400)),
        num_envs=int(rng.integers(1, 12)),
        train_frequency=int(rng.integers(1, 15)),
        gradient_steps=int(rng.integers(1, 4)),
        learning_starts=int(rng.integers(0, 60)),
        target_network_frequency=int(rng.integers(1, 40)),
        exploration_fraction=float(rng.choice([0.0, 0.3, 1.0])),
        anneal_lr=bool(rng.integers(2)),
    )
    expected = one_at_a_time(config, 60)
    found, steps, last, left = [], 0, config.learning_starts, 60
    while left:  # in pieces of random lengths
        piece = min(left, int(rng.integers(1, 20)))
        plan = make_plan(config, config.num_envs, steps, last, piece)
        found += list(zip(plan.operation.tolist(), plan.argument.tolist(), strict=True))
        steps, last, left = plan.env_steps, max(last, plan.env_steps), left - piece
    assert [kind for kind, _ in found] == [kind for kind, _ in expected]
    assert [value for _, value in found] == [value for _, value in expected]
