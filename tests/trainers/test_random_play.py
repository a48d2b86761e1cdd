"""What chance earns, by hand."""

import gymnasium
import numpy as np

from rlbench.trainers.random_play import random_return


class Corridor(gymnasium.Env):
    """Four steps; action 1 earns 1, action 0 nothing: returns lie between 0 and 4, at random 2."""

    observation_space = gymnasium.spaces.Box(0, 4, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.at += 1
        return np.array([self.at], np.float32), float(action), self.at == 4, False, {}


def test_random_return_is_that_of_fair_coins():
    value = random_return(Corridor, 400, seed=5)
    assert abs(value - 2.0) < 4 * 1.0 / np.sqrt(400)  # four fair coins have a standard deviation of 1
    assert value == random_return(Corridor, 400, seed=5)


def test_random_return_keeps_to_legal_actions():
    class OnlyOne(Corridor):
        def reset(self, **kwargs):
            obs, _ = super().reset(**kwargs)
            return obs, {"action_mask": np.array([0, 1])}

        def step(self, action):
            *rest, _ = super().step(action)
            return *rest, {"action_mask": np.array([0, 1])}

    assert random_return(OnlyOne, 3, seed=1) == 4.0
