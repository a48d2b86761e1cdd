"""A trainer refuses what it cannot use at construction, not after the training."""

import gymnasium
import numpy as np
import pytest

from rlbench import ChoiceError, Choices, ConfigError, DQNConfig
from rlbench.envs.spaces import EnvError
from rlbench.trainers.dqn import DQN

SMALL = DQNConfig(total_timesteps=60, learning_starts=10, batch_size=4, hidden=(4,), eval_episodes=2)


class Room(gymnasium.Env):
    """Ends after three steps."""

    def __init__(self, size=2, actions=2, start=0):
        self.observation_space = gymnasium.spaces.Box(0, 1, (size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(actions, start=start)

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros(self.observation_space.shape, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.zeros(self.observation_space.shape, np.float32), 1.0, self.t == 3, False, {}


@pytest.mark.parametrize("config", [{"seed": 1}, "CartPole-v1", {}, Choices()])
def test_what_is_no_config_is_refused(config):
    with pytest.raises(ConfigError, match="config must be a DQNConfig, such as"):
        DQN(config)


@pytest.mark.parametrize("choices", ["fast", {"replay": "deque"}, {}, DQNConfig()])
def test_what_is_no_choices_is_refused(choices):
    with pytest.raises(ChoiceError, match="choices must be a Choices, such as"):
        DQN(SMALL, choices)


@pytest.mark.parametrize("other", [{"size": 3}, {"actions": 3}, {"start": 1}])
def test_an_evaluation_env_with_other_spaces_is_refused(other):
    with pytest.raises(EnvError, match=r"accepted are those of the training env, \(2,\) and 2 from 0"):
        DQN(SMALL, env=Room, eval_env=lambda: Room(**other))
    assert DQN(SMALL, env=Room, eval_env=lambda: Room()).train(progress=False).returns == [3.0, 3.0]


def test_a_factory_that_gives_one_env_again_and_again_is_refused():
    room = Room()
    with pytest.raises(EnvError, match="Room: the factory gave the same environment twice"):
        DQN(SMALL, env=lambda: room)
    assert DQN(SMALL, env=room).train(progress=False).returns == [3.0, 3.0]  # an env itself is copied
