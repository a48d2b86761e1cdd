"""What PPO reaches where the answer is known. Slow, but for the bandit."""

import pytest

from rlbench import PPO, Choices, PPOConfig
from rlbench.envs import IdBandit, Othello
from rlbench.trainers.strength import greedy_player, match


def test_the_bandit_is_solved_to_a_hundredth():
    game = IdBandit()
    trainer = PPO(PPOConfig.preset("bandit", total_timesteps=160_000, eval_episodes=20), Choices.fast(), game)
    history = trainer.train(progress=False)
    assert game.optimum_share(greedy_player(trainer), 2_000, seed=5) >= 0.99
    assert history.strength["optimum"]["share"] >= 0.99


class Nim:
    """Take 1 to 3 from a heap; who takes the last wins. Right play leaves a multiple of 4. The id of taking k is 2^k."""

    name, obs_size, alternating = "Nim", 16, True

    def reset(self, seed, episode, index):
        self.heap = 15 - (episode + index) % 4

    def features(self):
        return [float(k == self.heap) for k in range(16)]

    def legal(self):
        return [1 << k for k in range(1, min(3, self.heap) + 1)]

    def step(self, action_id):
        self.heap -= action_id.bit_length() - 1
        return float(self.heap == 0), self.heap == 0


def test_self_play_finds_perfect_play():
    config = PPOConfig(
        total_timesteps=60_000, num_envs=16, num_steps=32, learning_rate=3e-3, gamma=1.0, eval_episodes=0
    )
    trainer = PPO(config, Choices.fast(), Nim)
    trainer.train(progress=False)
    for heap in (heap for heap in range(1, 16) if heap % 4):
        game = Nim()
        game.heap = heap
        assert trainer.act(game.features(), game.legal()) == 1 << heap % 4, f"heap {heap}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cartpole_is_solved(seed):
    history = PPO(PPOConfig.preset("cartpole", seed=seed), Choices.fast(), "CartPole-v1").train(progress=False)
    assert history.eval_episodes == 100 and history.mean_return >= 475


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_short_training_beats_who_looks_two_plies_ahead():
    config = PPOConfig.preset("othello", total_timesteps=4_000_000, eval_episodes=0)
    trainer = PPO(config, Choices.fast(), Othello(8, opening_plies=40, least_opening_plies=0))
    trainer.train(progress=False)
    for name, share in (("random", 0.9), ("greedy", 0.85), ("alpha_beta_2", 0.6)):
        assert match(trainer, name, 400, seed=3).win_share >= share
