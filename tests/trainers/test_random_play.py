"""What chance earns, by hand."""

import gymnasium
import numpy as np
import pytest
import torch

from rlbench import PPOConfig
from rlbench.envs.bandit import IdBandit
from rlbench.envs.othello import Othello
from rlbench.envs.source import env_source
from rlbench.trainers.random_play import random_game_return, random_return

CPU = torch.device("cpu")


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


class Coins:
    """A game for one: four steps; id 9 earns 1, id 2^63 nothing, in either order."""

    name, obs_size, alternating = "Coins", 1, False

    def reset(self, seed, episode, index):
        self.at = 0

    def features(self):
        return [float(self.at)]

    def legal(self):
        return [2**63, 9] if self.at % 2 else [9, 2**63]

    def step(self, action_id):
        self.at += 1
        return float(action_id == 9), self.at == 4


def of_game(game, episodes, seed=5, **changes):
    config = PPOConfig(eval_episodes=episodes, **changes)
    return random_game_return(env_source(game), config, seed, CPU)


def test_chance_in_a_game_for_one_earns_as_fair_coins_do():
    value = of_game(Coins, 400)
    assert abs(value - 2.0) < 4 * 1.0 / np.sqrt(400)
    assert value == of_game(Coins, 400) != of_game(Coins, 400, seed=6)


def test_chance_in_the_bandit_earns_the_mean_of_all_ids():
    assert abs(of_game(IdBandit(), 4000) - 0.5) < 4 * 0.14 / np.sqrt(4000)


def test_chance_against_chance_is_even_and_loses_to_who_looks_ahead():
    assert abs(of_game(Othello(4), 600, eval_opponent="random")) < 4 / np.sqrt(600)
    assert of_game(Othello(6), 60, eval_opponent="alpha_beta_2") < -0.3


@pytest.mark.parametrize("game", [Coins, Othello(4)])
def test_without_an_evaluation_or_stopped_there_is_no_number(game):
    assert of_game(game, 0) is None
    config = PPOConfig(eval_episodes=8)
    assert random_game_return(env_source(game), config, 1, CPU, lambda: True) is None
