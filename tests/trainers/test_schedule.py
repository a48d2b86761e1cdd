"""Periods fire by crossing a threshold, whatever the stride."""

import warnings

import pytest

from rlbench import DQNConfig
from rlbench.trainers.schedule import Every, linear, update_points, warn_without_updates


@pytest.mark.parametrize("stride", [1, 3, 8, 10, 7])
def test_every_counts_the_same_for_all_strides(stride):
    every, step, fired = Every(10, start=20), 0, 0
    while step < 210:
        step += stride
        fired += every.crossed(min(step, 210))
    assert fired == 19  # 30, 40, … 210


def test_every_counts_several_at_once_and_none_twice():
    every = Every(5)
    assert [every.crossed(step) for step in (4, 5, 5, 21, 20, 25)] == [0, 1, 0, 3, 0, 1]
    assert Every(0).crossed(1000) == 0


@pytest.mark.parametrize("stride", [1, 2, 8, 64])
def test_updates_are_due_at_the_same_steps_for_all_strides(stride):
    points = []
    for before in range(0, 64, stride):
        points += update_points(before, before + stride, learning_starts=10, train_frequency=4)
    assert points == [12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64]


def test_learning_starts_after_its_step():
    assert list(update_points(9, 10, 10, 5)) == []
    assert list(update_points(10, 15, 10, 5)) == [15]
    assert list(update_points(0, 3, 0, 1)) == [1, 2, 3]


def test_linear():
    assert [linear(1.0, 0.2, 4, step) for step in (0, 1, 2, 4, 9)] == pytest.approx([1.0, 0.8, 0.6, 0.2, 0.2])
    assert linear(1.0, 0.1, 0, 0) == 0.1


@pytest.mark.parametrize(
    ("settings", "updates"),
    [
        ({"total_timesteps": 100, "learning_starts": 100}, 0),
        ({"total_timesteps": 100, "learning_starts": 99, "train_frequency": 1}, 1),
        ({"total_timesteps": 9, "learning_starts": 0, "train_frequency": 10}, 0),
        ({"total_timesteps": 9, "learning_starts": 0, "train_frequency": 10, "num_envs": 4}, 1),  # goes on to 12
    ],
)
def test_warns_exactly_where_there_is_no_update(settings, updates):
    config = DQNConfig(**settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_without_updates(config)
    assert len(caught) == (updates == 0)
