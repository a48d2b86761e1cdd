"""PPO whole: counts, what a rollout holds, what updates see, errors that name what is wrong."""

import gymnasium
import numpy as np
import pytest
import torch

import rlbench
from rlbench import Choices, PPOConfig
from rlbench.actions import ActionError
from rlbench.config import ConfigError
from rlbench.envs.bandit import IdBandit
from rlbench.envs.othello import Othello
from rlbench.envs.spaces import EnvError
from rlbench.speedups import SPEEDUPS, ChoiceError
from rlbench.trainers.ppo import PPO

SHORT = {
    "total_timesteps": 96,
    "num_envs": 4,
    "num_steps": 12,
    "batch_size": 16,
    "update_epochs": 2,
    "hidden": (16, 16),
}
SHORT |= {"log_frequency": 48, "eval_episodes": 2, "anneal_lr": False, "learning_rate": 1e-3}
GAME = Othello(4)


def trained(env=GAME, choices=None, **changes):
    trainer = PPO(PPOConfig(**{**SHORT, **changes}), choices, env)
    return trainer, trainer.train(progress=False)


@pytest.mark.parametrize("env", [GAME, IdBandit(), "CartPole-v1", Othello(4, opponent="random", opening_plies=2)])
def test_counts_and_rows(env):
    trainer, history = trained(env)
    # 96 steps are two rollouts of 4 * 12; each is 3 minibatches of 16, gone over twice.
    assert (history.env_steps, history.updates, trainer.iterations) == (96, 12, 2)
    frame = history.to_frame()
    assert list(frame.env_step) == [48, 96] and list(frame.updates) == [6, 12]
    assert frame[["loss", "entropy", "approx_kl", "first_ratio_error"]].notna().all().all()
    assert history.eval_episodes == 2 and history.summary()["network"]["parameters"] > 0


def test_an_episode_of_self_play_is_noted_with_the_return_of_who_began():
    _, history = trained(total_timesteps=480)
    episodes = history.episodes
    assert len(episodes) > 10 and set(episodes.episode_return) <= {-1.0, 0.0, 1.0}
    assert episodes.length.between(5, 20).all()  # 12 squares to fill, and some passes


class Corridor:
    """One game of three states in a row, one action each; the last step earns 4."""

    name, obs_size, alternating = "Corridor", 1, False
    legal_ids = ((5,), (2**63,), (0,))

    def reset(self, seed, episode, index):
        self.at = 0

    def features(self):
        return [float(self.at)]

    def legal(self):
        return self.legal_ids[self.at]

    def step(self, action_id):
        self.at += 1
        return (4.0 if self.at == 3 else 0.0), self.at == 3


class Turns(Corridor):
    name, alternating = "Turns", True


def rollout_of(env, **changes):
    trainer = PPO(PPOConfig(**{**SHORT, "num_envs": 2, "num_steps": 5, "eval_episodes": 0, **changes}), env=env)
    return trainer, trainer.rollouts.collect(0, lambda finished: None)


def test_a_rollout_holds_states_ids_and_ends_in_order():
    trainer, rollout = rollout_of(Corridor)
    assert rollout.obs[..., 0].tolist() == [[0, 0], [1, 1], [2, 2], [0, 0], [1, 1]]
    assert rlbench.actions.unpack(rollout.legal) == [[5], [5], [2**63], [2**63], [0], [0], [5], [5], [2**63], [2**63]]
    assert rollout.terminated.tolist() == [[False] * 2, [False] * 2, [True] * 2, [False] * 2, [False] * 2]
    assert rollout.log_prob.eq(0).all() and rollout.choice.eq(0).all()  # one action: certain, exactly
    # What a step leads to is worth what the next state is; behind the last one, the state that is acted in next.
    torch.testing.assert_close(rollout.next_value[:2], rollout.value[1:3])
    expected = trainer.model.states(torch.tensor([[2.0], [2.0]]))[1]
    torch.testing.assert_close(rollout.next_value[4], expected)


@pytest.mark.parametrize(("env", "signs"), [(Corridor, (1, 1)), (Turns, (1, -1))])
def test_the_others_gain_is_ones_own_loss_where_players_take_turns(env, signs):
    """With lambda 1 and gamma 1 an advantage is what the rest of the episode earns less the value."""
    trainer, rollout = rollout_of(env, gae_lambda=1.0, gamma=1.0)
    source, rows = trainer.learnable(rollout)
    target = source.rows.decisions.target.view(5, 2)
    _, before = signs
    assert target[2].tolist() == [4.0, 4.0] and rows.tolist() == list(range(10))
    assert target[1].tolist() == [4.0 * before] * 2 and target[0].tolist() == [4.0 * before**2] * 2


EVALUATORS = (
    [name for name in SPEEDUPS["evaluate"].variants if name != "packed_triton"] if "evaluate" in SPEEDUPS else []
)


@pytest.mark.parametrize("evaluate", EVALUATORS)
def test_the_first_ratio_is_one_on_every_path(evaluate):
    reason = SPEEDUPS["evaluate"].requires(evaluate, None, None, torch.device("cpu"), None)
    if reason:
        pytest.skip(reason)
    _, history = trained(choices=Choices(evaluate=evaluate), total_timesteps=48)
    assert 0 <= history.to_frame().first_ratio_error.max() < 1e-5


def test_the_first_ratio_is_near_one_under_bfloat16():
    _, history = trained(choices=Choices(precision="bfloat16"), total_timesteps=48)
    assert history.to_frame().first_ratio_error.max() < 2e-2


def test_an_epoch_that_moved_too_far_ends_the_round():
    _, free = trained(update_epochs=8, learning_rate=0.1, total_timesteps=48)
    _, held = trained(update_epochs=8, learning_rate=0.1, total_timesteps=48, target_kl=1e-6)
    assert free.updates == 24 and held.updates == 3  # three minibatches an epoch, one epoch


def test_gradients_that_are_accumulated_are_those_of_the_whole():
    (whole, _), (parts, _) = trained(), trained(gradient_accumulation=3)
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_the_same_seed_is_the_same_training_and_another_is_not():
    digests = [trained(seed=seed)[1].weights_sha256 for seed in (3, 3, 4)]
    assert digests[0] == digests[1] != digests[2]


class Masked(gymnasium.Env):
    """Four actions, of which those below `step` are illegal; choosing one of them is an error."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def _info(self):
        return {"action_mask": np.arange(4) >= self.at}

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return np.zeros(2, np.float32), self._info()

    def step(self, action):
        assert action >= self.at, "an illegal action was chosen"
        self.at = (self.at + 1) % 4
        return np.full(2, self.at / 4, np.float32), 1.0, False, self.at == 0, self._info()


def test_a_mask_is_kept_to_and_truncation_is_bootstrapped():
    trainer, rollout = rollout_of(Masked)
    assert rollout.legal[:4, 0].sum(1).tolist() == [4, 3, 2, 1]
    assert rollout.log_prob[3].eq(0).all() and rollout.choice[3].eq(3).all()  # one legal action
    assert rollout.truncated[3].all() and not rollout.terminated.any()
    expected = trainer.model.values(torch.zeros(2, 2))  # where the truncated step led: at / 4 = 0
    torch.testing.assert_close(rollout.next_value[3], expected)
    _, history = trained(Masked)
    assert history.mean_return == 4.0


def test_a_vector_env_that_only_resets_in_a_call_leaves_no_sample_of_it():
    envs = gymnasium.vector.SyncVectorEnv([Masked, Masked])  # NEXT_STEP: the call behind an end is no transition
    trainer = PPO(
        PPOConfig(**{**SHORT, "num_envs": 2, "num_steps": 10, "total_timesteps": 40, "eval_episodes": 0}), env=envs
    )
    rollout = trainer.rollouts.collect(0, lambda finished: None)
    assert rollout.valid[:, 0].tolist() == [True] * 4 + [False] + [True] * 4 + [False]
    _, rows = trainer.learnable(rollout)
    assert len(rows) == 16
    history = trainer.train(progress=False)
    assert history.env_steps >= 40


class Stuck(Corridor):
    def legal(self):
        return () if self.at == 1 else (7,)


class TooLarge(Corridor):
    legal_ids = ((5,), (2**64,), (0,))


class NotANumber(Corridor):
    def features(self):
        return [float("nan") if self.at == 2 else 0.0]


@pytest.mark.parametrize(
    ("env", "error", "says"),
    [
        (Stuck, ActionError, r"legal\(\) is empty"),
        (TooLarge, ActionError, "18446744073709551616"),
        (NotANumber, EnvError, "feature 0 is nan"),
    ],
)
def test_a_game_that_is_wrong_gets_one_error_that_names_the_state(env, error, says):
    with pytest.raises((error, EnvError), match=says) as caught:
        trained(env)
    assert "game 0" in str(caught.value) or "state" in str(caught.value)


def test_a_dqn_refuses_a_game_and_says_who_takes_it():
    with pytest.raises(EnvError, match=r"rlbench\.PPO"):
        rlbench.DQN(env=GAME)


def test_a_slot_that_ppo_does_not_have_is_refused():
    with pytest.raises(ChoiceError, match="ppo has no such slot"):
        PPO(PPOConfig(), Choices(replay="deque"), GAME)
    with pytest.raises(ChoiceError, match="no sets of legal actions"):
        PPO(PPOConfig(), Choices(evaluate="packed"), "CartPole-v1")


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="eval_opponent"):
        PPOConfig(eval_opponent="grandmaster")
    with pytest.raises(ConfigError, match="hidden"):
        PPOConfig(hidden=())


def test_it_acts():
    trainer, _ = trained(Corridor)
    assert trainer.act([1.0], [2**63]) == 2**63
    cart, _ = trained("CartPole-v1")
    assert cart.act(np.zeros(4, np.float32)) in (0, 1)
