"""NaN and infinity are refused where they come in, and a loss that is none says that training has diverged."""

import gymnasium
import numpy as np
import pytest

from rlbench import Choices, ConfigError, DQNConfig
from rlbench.envs.spaces import EnvError
from rlbench.trainers.dqn import DQN
from rlbench.trainers.evaluate import evaluate
from rlbench.trainers.finite import finite

SMALL = DQNConfig(
    total_timesteps=90,
    learning_starts=10,
    train_frequency=2,
    batch_size=4,
    hidden=(4,),
    eval_episodes=0,
    log_frequency=30,
)


class Planted(gymnasium.Env):
    """Episodes of ten steps; gives `value` as a reward, or in its observation, at the step asked for (counted from reset)."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, reward_at=None, obs_at=None, value=np.nan, episode=0):
        self.reward_at, self.obs_at, self.value, self.episode = reward_at, obs_at, value, episode

    def _obs(self):
        obs = np.zeros(3, np.float32)
        obs[1] = self.value if self.t == self.obs_at and self.episode < 0 else 0.5
        return obs

    def reset(self, *, seed=None, options=None):
        self.t, self.episode = 0, self.episode - 1
        return self._obs(), {}

    def step(self, action):
        self.t += 1
        reward = self.value if self.t == self.reward_at and self.episode < 0 else 1.0
        return self._obs(), reward, False, self.t == 10, {}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("plant", "says"),
    [
        ({"reward_at": 4}, r"Planted: reward is {} of env 0 at env step 4; accepted are finite"),
        ({"reward_at": 10, "episode": 2}, r"Planted: reward is {} of env 0 at env step 30;"),
        ({"obs_at": 4}, r"Planted: observation\[1\] is {} of env 0 at env step 4;"),
        ({"obs_at": 10}, r"observation\[1\] is {} of env 0 at env step 10;"),  # the last of an episode
        (
            {"obs_at": 0, "episode": 1},
            r"observation\[1\] is {} of env 0 at env step 10;",
        ),  # the first of the second one
        ({"obs_at": 0}, r"observation\[1\] is {} of env 0 at its first reset;"),
    ],
)
def test_the_first_bad_number_is_named(plant, says, value):
    with pytest.raises(EnvError, match=says.format(value)):
        DQN(SMALL, env=lambda: Planted(value=value, **plant)).train(progress=False)


@pytest.mark.parametrize("mode", list(gymnasium.vector.AutoresetMode))
@pytest.mark.parametrize(
    "plant", [{"reward_at": 4, "episode": 1}, {"obs_at": 7}, {"obs_at": 10}, {"obs_at": 0, "episode": 1}]
)
def test_in_a_vector_env_the_env_is_named(mode, plant):
    made = iter([{}, plant])
    envs = gymnasium.vector.SyncVectorEnv([lambda: Planted(**next(made))] * 2, autoreset_mode=mode)
    with pytest.raises(EnvError, match="is nan of env 1 at env step"):
        DQN(SMALL.replace(num_envs=2), env=envs).train(progress=False)


@pytest.mark.parametrize(
    ("plant", "says"), [({"reward_at": 4}, "reward is nan 4 steps"), ({"obs_at": 10}, "nan 10 steps")]
)
def test_an_evaluation_is_refused_too(plant, says):
    with pytest.raises(EnvError, match=f"{says} into an episode of evaluation env 0;"):
        evaluate(lambda obs, mask: np.zeros(len(obs), np.int64), lambda: Planted(**plant), 2, seed=0)


def test_large_finite_numbers_pass():
    assert finite(np.full((2, 3), 3e38, np.float32)) and finite(np.zeros((0, 3)))
    assert not finite(np.array([[1, np.nan]])) and not finite(np.array([np.inf, -np.inf]))


@pytest.mark.parametrize("metrics", ["item_each_step", "on_device"])
def test_a_training_that_diverges_stops_at_a_log_point(metrics):
    trainer = DQN(SMALL, Choices(metrics=metrics), env=lambda: Planted(value=1e30, reward_at=5))
    with pytest.raises(ConfigError, match=r"the loss is inf at env step 30, after 10 updates: training has diverged"):
        trainer.train(progress=False)
