import numpy as np
import pytest

from rlbench.buffers import RowSpec
from rlbench.config import DQNConfig
from rlbench.envs.spaces import EnvError
from rlbench.trainers.explore import EpsilonGreedy, random_legal


def test_random_legal_actions_are_legal_and_equally_likely():
    mask = np.array([[True, False, True, True], [False, False, False, True], [True] * 4])
    rng = np.random.default_rng(0)
    drawn = np.stack([random_legal(rng.integers(0, 2**32, 3), mask) for _ in range(6000)])
    counts = np.stack([np.bincount(drawn[:, i], minlength=4) for i in range(3)]) / 6000
    np.testing.assert_allclose(counts, [[1 / 3, 0, 1 / 3, 1 / 3], [0, 0, 0, 1], [0.25] * 4], atol=0.03)
    # The extreme words give the first and the last legal action.
    assert random_legal(np.array([0, 0, 0]), mask).tolist() == [0, 3, 0]
    assert random_legal(np.full(3, 2**32 - 1), mask).tolist() == [3, 3, 3]


def test_no_legal_action_is_an_error_that_names_the_env():
    with pytest.raises(EnvError, match="env 1 has no legal action"):
        random_legal(np.zeros(2, np.int64), np.array([[True, False], [False, False]]))


def test_rate_of_exploration_and_that_the_network_is_not_asked_in_vain():
    explore = EpsilonGreedy(RowSpec(1, 5), DQNConfig(seed=3), num_envs=4)
    obs, asked = np.zeros((4, 1), np.float32), []

    def greedy(obs, mask):
        asked.append(1)
        return np.full(4, -1)

    drawn = np.stack([explore(step, 0.3, obs, None, greedy) for step in range(5000)])
    # 20,000 draws: standard error 0.0032.
    assert abs((drawn >= 0).mean() - 0.3) < 0.015
    assert abs(drawn[drawn >= 0].mean() - 2.0) < 0.1
    asked.clear()
    assert (explore(0, 1.0, obs, None, greedy) >= 0).all() and not asked
    assert (explore(0, 0.0, obs, None, greedy) == -1).all() and asked
