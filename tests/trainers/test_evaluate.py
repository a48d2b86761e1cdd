import gymnasium
import numpy as np
import pytest

from rlbench.trainers.evaluate import evaluate


class Lengths(gymnasium.Env):
    """The k-th episode of env number i lasts i + k steps of reward 1; made in order."""

    made = 0
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def __init__(self):
        type(self).made += 1
        self.number, self.episode, self.closed = type(self).made, -1, False

    def reset(self, *, seed=None, options=None):
        self.episode += 1
        self.left = self.number + self.episode
        return np.zeros(1, np.float32), {}

    def step(self, action):
        assert action in (1, 2)
        self.left -= 1
        return np.zeros(1, np.float32), 1.0, self.left == 0, False, {}


@pytest.mark.parametrize(
    ("episodes", "expected"), [(0, []), (1, [1.0]), (3, [1.0, 2.0, 3.0]), (22, [1, 2, 2, 3, *range(3, 21)])]
)
def test_every_env_finishes_its_share(episodes, expected):
    """22 episodes on 20 envs: the first two play two each; none is left out for being long."""
    Lengths.made = 0
    assert evaluate(lambda obs, mask: np.zeros(len(obs), np.int64), Lengths, episodes, seed=0) == expected
