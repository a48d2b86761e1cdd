"""n-step rows against sums worked by hand; no row crosses an end."""

import numpy as np

from rlbench.batch import Collected
from rlbench.buffers import NStep, one_step


def collected(obs, reward, next_obs, terminated=False, truncated=False, valid=None, mask=None):
    n = len(obs)

    def flags(value):
        return np.broadcast_to(np.asarray(value, bool), n).copy()

    return Collected(
        np.asarray(obs, np.float32)[:, None],
        np.arange(n),
        np.asarray(reward, float),
        np.asarray(next_obs, np.float32)[:, None],
        flags(terminated),
        flags(truncated),
        mask,
        None if valid is None else flags(valid),
    )


def listed(rows):
    if rows is None:
        return []
    fields = (rows.obs[:, 0], rows.reward, rows.next_obs[:, 0], rows.terminated, rows.truncated, rows.discount)
    return [tuple(float(v) for v in row) for row in zip(*fields, strict=True)]


def test_three_steps_with_a_termination():
    n_step = NStep(3, gamma=0.5, num_envs=1)
    assert listed(n_step(collected([0], [1.0], [1]))) == []
    assert listed(n_step(collected([1], [2.0], [2]))) == []
    # 1 + 0.5·2 + 0.25·4 = 3; the discount to the state three on is 0.125.
    assert listed(n_step(collected([2], [4.0], [3]))) == [(0, 3.0, 3, 0, 0, 0.125)]
    # The end at state 4 flushes: 2 + 0.5·4 + 0.25·8 = 6, 4 + 0.5·8 = 8, 8.
    assert listed(n_step(collected([3], [8.0], [4], terminated=True))) == [
        (1, 6.0, 4, 1, 0, 0.125),
        (2, 8.0, 4, 1, 0, 0.25),
        (3, 8.0, 4, 1, 0, 0.5),
    ]
    assert listed(n_step(collected([9], [1.0], [10]))) == []  # the next episode starts empty


def test_truncation_keeps_its_flag_and_a_shorter_discount():
    n_step = NStep(5, gamma=0.5, num_envs=1)
    n_step(collected([0], [1.0], [1]))
    assert listed(n_step(collected([1], [1.0], [2], truncated=True))) == [
        (0, 1.5, 2, 0, 1, 0.25),
        (1, 1.0, 2, 0, 1, 0.5),
    ]


def test_envs_are_kept_apart_and_reset_calls_ignored():
    n_step = NStep(2, gamma=1.0, num_envs=2)
    n_step(collected([0, 100], [1.0, 10.0], [1, 101], terminated=[True, False]))
    rows = listed(n_step(collected([5, 101], [0.0, 20.0], [6, 102], valid=[False, True])))
    assert rows == [(100, 30.0, 102, 0, 0, 1.0)]


def test_masks_are_those_of_the_state_that_is_bootstrapped():
    n_step = NStep(2, gamma=1.0, num_envs=1)
    n_step(collected([0], [1.0], [1], mask=np.array([[True, False]])))
    rows = n_step(collected([1], [1.0], [2], mask=np.array([[False, True]])))
    assert rows.next_mask.tolist() == [[False, True]]


def test_one_step_keeps_only_real_transitions():
    step = collected([0, 1, 2], [1, 2, 3], [1, 2, 3], valid=[True, False, True])
    assert listed(one_step(step, 0.5)) == [(0, 1, 1, 0, 0, 0.5), (2, 3, 3, 0, 0, 0.5)]
    step = collected([0, 1], [1, 2], [1, 2])
    assert listed(one_step(step, 0.5)) == [(0, 1, 1, 0, 0, 0.5), (1, 2, 2, 0, 0, 0.5)]
