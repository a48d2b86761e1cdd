"""The replay notebook's measurements: a row for every variant and size, frames equal to whole rows, nothing left out."""

import pytest

from rlbench.experiments import replay

SMALL = {"rounds": 1, "quick": True, "progress": False}


def test_capacity_has_a_row_a_ring_and_size():
    rows = replay.capacity([50, 10_050], batch_size=4, **SMALL)
    names = ["ring_numpy", "ring_torch", "ring_torch, packed"]
    assert [(row["size"], row["variant"]) for row in rows] == [(size, name) for size in (50, 10_050) for name in names]
    assert all(row["baseline_us"] > 0 and row["median_us"] > 0 for row in rows)
    assert rows[0]["megabytes"] == pytest.approx(50 * 4 * 37 / 1e6)  # 16 + 16 + 5 numbers a row


def test_priorities_are_timed_with_both_trees():
    rows = replay.prioritised([3, 5], capacity=64, **SMALL)
    assert [(row["size"], row["variant"]) for row in rows] == [
        (size, f"priorities={name}") for size in (3, 5) for name in ("loop", "vectorised")
    ]


def test_frames_equal_whole_rows_and_take_less():
    rows = replay.frames([2, 6], features=4, capacity=80, batch_size=3, episode=7, **SMALL)
    assert [(row["window"], row["work"]) for row in rows] == [(w, work) for w in (2, 6) for work in ("sample", "store")]
    assert all(row["same"] is True for row in rows)
    wide = rows[-1]
    assert wide["bytes_whole"] == 4 * (2 * (6 * 4 + 2) + 5)


def test_a_ring_that_differs_is_said_to():
    whole, frames = replay.RingTorch(replay.SPEC, 4), replay.RingTorch(replay.SPEC, 4)
    replay._fill(4, whole, frames)
    assert replay._same(whole, frames, 4)
    frames.rows[2, 5] += 1
    assert not replay._same(whole, frames, 4)


def test_the_env_of_the_whole_trainings_has_windows():
    env = replay.windowed_env()
    assert env.layout.window == 8 and env.observation_space.shape == (8 * env.layout.features + 2,)
