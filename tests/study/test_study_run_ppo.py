"""Studies of PPO: tiny trainings on games and on a Gymnasium env that must pair up, with a zero of the scale."""

import gymnasium
import numpy as np
import pytest

from rlbench import Choices, DQNConfig, PPOConfig
from rlbench.envs.bandit import IdBandit
from rlbench.envs.othello import Othello
from rlbench.envs.spaces import EnvError
from rlbench.study import plan, study, summarise

TINY = PPOConfig(
    total_timesteps=64,
    num_envs=4,
    num_steps=8,
    batch_size=16,
    update_epochs=2,
    hidden=(8,),
    eval_episodes=6,
    eval_frequency=32,
    log_frequency=32,
)


class Corridor(gymnasium.Env):
    """Four steps; action 1 earns 1, action 0 nothing."""

    observation_space = gymnasium.spaces.Box(0, 4, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.at += 1
        return np.array([self.at], np.float32), float(action), self.at == 4, False, {}


class Two:
    """A game in plain Python of which a class is given: one step, of two actions."""

    name, obs_size, alternating = "Two", 1, False

    def reset(self, seed, episode, index): ...

    def features(self):
        return [1.0]

    def legal(self):
        return [3, 2**63 + 1]

    def step(self, action_id):
        return float(action_id == 3), True


def make_game():
    return Othello(4)


@pytest.mark.parametrize(
    ("env", "name"),
    [(Othello(4), "Othello 4x4"), (make_game, "Othello 4x4"), (IdBandit(), "IdBandit"), (Two, "Two"), (Corridor, None)],
)
def test_trainings_pair_up_on_games_and_on_other_envs(env, name):
    made = plan("alone", TINY, slots=["minibatch"], env=env)
    rows = study(made, env, seeds=[3], progress=False)
    assert [row["random_return"] for row in rows[1:]] == [rows[0]["random_return"]] * (len(rows) - 1)
    trained = {row["label"]: row for row in rows if row["not_measured"] is None}
    assert {"plain", "plain again", "minibatch=copies", "minibatch=stack_samples"} <= set(trained)
    assert len({row["weights_sha256"] for label, row in trained.items() if label != "minibatch=by_count"}) == 1
    row = trained["minibatch=copies"]
    assert row["changed"] == {"minibatch": "copies"} and row["choices"]["minibatch"] == "copies"
    assert row["config"]["num_steps"] == 8 and row["config"]["seed"] == 3
    assert row["env_steps"] == 64 and row["eval_episodes"] == 6
    assert [step for step, _, _ in row["evaluations"]] == [32, 64]
    assert row["env"] == (name or "Corridor")
    summary = summarise(rows).set_index("label")
    assert "bit for bit" in summary.loc["minibatch=copies", "learns"]
    low, high = (-1, 1) if name == "Othello 4x4" else (0, 4)
    assert low <= row["random_return"] <= high and low <= row["mean_return"] <= high


def test_a_game_is_learnt_against_the_zero_of_chance():
    config = TINY.replace(total_timesteps=2048, num_envs=64, batch_size=64, learning_rate=0.02, eval_episodes=200)
    rows = study(plan("alone", config, slots=["metrics"], env=Two), Two, seeds=[1], progress=False)
    assert 0.3 < rows[0]["random_return"] < 0.7
    assert all(row["mean_return"] == 1.0 for row in rows)


def test_choices_of_ppo_are_in_the_rows():
    rows = study(plan("choices", TINY, env=Othello(4)), Othello(4), seeds=[1], progress=False, env_name="othello4")
    naive = next(row for row in rows if row["label"] == "naive")
    assert naive["changed"].items() >= {"games": "one_by_one", "evaluate": "loop", "gae": "loop"}.items()
    assert set(naive["choices"]) <= set(Choices.naive().to_dict()) - {"replay", "loop", "update"}
    assert {row["env"] for row in rows} == {"othello4"}


def test_a_stop_during_random_play_of_a_game_ends_the_study():
    calls = iter(range(1000))
    made = plan("choices", TINY, env=Othello(4))
    rows = study(made, Othello(4), seeds=[1], progress=False, should_stop=lambda: next(calls) >= 2)
    assert rows == [] and next(calls) < 20


def test_what_a_study_of_games_refuses():
    with pytest.raises(EnvError, match="leave eval_env out"):
        study(plan("choices", TINY), Othello(4), eval_env=Corridor, progress=False)
    with pytest.raises(EnvError, match="which DQN does not take"):
        study(plan("choices", DQNConfig()), Othello(4), progress=False)
    with pytest.raises(EnvError, match="pass its class"):
        study(plan("choices", TINY), Two(), progress=False)
