"""What native code must not be led into: rules that are not its own, shapes it has no room for, memory that has moved."""

import pytest
import torch

from rlbench import DQN, Choices, DQNConfig, simulate
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.batch_cartpole_env import BatchCartPoleEnv
from rlbench.envs.batch_trading import BatchTrading
from rlbench.native.envs import NativeEnv, why_not_native
from rlbench.speedups import ChoiceError

SMALL = DQNConfig(
    total_timesteps=120,
    learning_starts=20,
    train_frequency=4,
    batch_size=8,
    buffer_size=100,
    hidden=(8,),
    target_network_frequency=25,
    eval_episodes=0,
    log_frequency=40,
)
MARKET = simulate.ornstein_uhlenbeck(200, seed=4)


class Seven(BatchTrading):
    """An account that earns 7 a step, whatever it does."""

    def step(self, state, action):
        state, step = super().step(state, action)
        return state, step._replace(reward=torch.full_like(step.reward, 7.0))


class Three(BatchCartPoleEnv):
    """Poles that earn 3 a step: a vector env that is more than the face of its core."""

    def step(self, actions):
        obs, reward, *rest = super().step(actions)
        return obs, 3.0 * reward, *rest


def test_a_subclass_is_not_stepped_by_the_rules_of_its_parent(capsys):
    core = Seven(MARKET, 2, episode_length=10)
    assert "no native counterpart" in why_not_native(core)
    with pytest.raises(TypeError, match="no native counterpart"):
        NativeEnv(core)
    with pytest.raises(ChoiceError, match="loop='native' cannot be used: BatchTrading has no native counterpart"):
        DQN(SMALL, Choices(loop="native"), core)
    for choices in (Choices.fast(), Choices(loop="tensors")):
        history = DQN(SMALL, choices, core).train(progress=False)
        assert history.episodes.episode_return.tolist() == [70.0] * len(history.episodes) and len(history.episodes) > 5


def test_a_vector_env_that_changes_rewards_is_stepped_itself():
    with pytest.raises(ChoiceError, match="Three has no batched counterpart"):
        DQN(SMALL, Choices(loop="tensors"), Three(2))
    history = DQN(SMALL, Choices.fast(), Three(2)).train(progress=False)
    assert (history.episodes.episode_return == 3.0 * history.episodes.length).all() and len(history.episodes) > 1


def test_the_plain_face_of_a_core_is_stepped_natively():
    assert DQN(SMALL, Choices.fast(), BatchCartPoleEnv(2)).choices.loop == "native"
    assert why_not_native(BatchCartPole(1)) is None


def test_more_layers_than_there_is_room_for():
    deep = SMALL.replace(hidden=(4,) * 16)
    for choices in (Choices(loop="native"), Choices(update="native")):
        with pytest.raises(ChoiceError, match="room for 15 hidden layers, and hidden has 16"):
            DQN(deep, choices, "CartPole-v1")
    used = DQN(deep, Choices.fast(), "CartPole-v1").choices
    assert (used.loop, used.update) == ("python", "eager")
    assert DQN(SMALL.replace(hidden=(4,) * 15), Choices.fast(), "CartPole-v1").choices.loop == "native"
