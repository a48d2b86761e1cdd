"""PPO under odd conditions: settings at their ends, games in any form, stops, evaluations in between, trainers side by side."""

import copy
import os
import pickle
import signal
import sys
import threading
import types

import gymnasium
import numpy as np
import pytest
import torch

import rlbench
from rlbench import Choices, PPOConfig
from rlbench import compile as compiling
from rlbench.cli.app import main
from rlbench.config import ConfigError
from rlbench.envs import matches
from rlbench.envs.bandit import IdBandit, ManyBandits
from rlbench.envs.othello import Othello
from rlbench.envs.spaces import EnvError
from rlbench.evaluations.compiled import forget_compiled
from rlbench.segments import argmax
from rlbench.trainers.ppo import PPO

SMALL = PPOConfig(
    total_timesteps=96,
    num_envs=4,
    num_steps=8,
    batch_size=12,
    update_epochs=2,
    hidden=(8, 6),
    eval_episodes=0,
    log_frequency=16,
    learning_rate=1e-3,
)
GAME = Othello(4)
MAKERS = {"plain": Choices.plain, "fast": Choices.fast}
ENVS = {"othello": GAME, "bandit": IdBandit(), "cart": "CartPole-v1"}


def train(env, choices=None, config=SMALL, **changes):
    trainer = PPO(config.replace(**changes), choices, env)
    return trainer, trainer.train(progress=False)


ODD = [
    {"num_envs": 1},
    {"num_steps": 1},
    {"batch_size": 1},
    {"batch_size": 10**6},
    {"num_envs": 1, "num_steps": 1, "batch_size": 1},
    {"num_envs": 1, "num_steps": 3, "batch_size": 2},
    {"update_epochs": 1},
    {"hidden": (1,)},
    {"hidden": (5, 17)},
    {"gradient_accumulation": 50},
    {"target_kl": 1e-5},
    {"clip_coef": 0.0},
    {"clip_vloss": True},
    {"ent_coef": 0.0},
    {"vf_coef": 0.0},
    {"max_grad_norm": 0.0},
    {"gamma": 0.0},
    {"gamma": 1.0, "gae_lambda": 1.0},
    {"gae_lambda": 0.0},
    {"norm_adv": False},
    {"learning_rate": 0.0},
    {"total_timesteps": 1},
    {"seed": 2**63 - 1},
]


@pytest.mark.parametrize(
    ("env", "odd"), [(env, odd) for env in ENVS for k, odd in enumerate(ODD) if env == "othello" or k % 3 == 0], ids=str
)
def test_settings_at_their_ends_work_and_are_the_same_fast(env, odd):
    (_, plain), (trainer, fast) = (train(ENVS[env], make(), **odd) for make in MAKERS.values())
    for history in (plain, fast):
        frame = history.to_frame()
        assert history.env_steps >= trainer.config.total_timesteps and history.updates > 0
        assert np.isfinite(frame[["loss", "entropy", "approx_kl", "clip_fraction"]].to_numpy()).all()
        assert frame.first_ratio_error.max() < 1e-5
        assert all(weight.isfinite().all() for weight in history.weights.values())
    assert (plain.env_steps, plain.updates) == (fast.env_steps, fast.updates)
    before = PPO(trainer.config, env=ENVS[env]).model.state_dict()
    one, other = (
        torch.cat([(history.weights[name] - start).flatten() for name, start in before.items()])
        for history in (plain, fast)
    )
    assert (one - other).norm() <= 0.1 * one.norm()  # Adam moves a parameter also where its gradient is rounding alone


@pytest.mark.parametrize(("most", "same"), [(1, True), (200, False)])
def test_bandits_of_one_action_and_of_many(most, same):
    """With one action nothing can be learnt about choosing: certain, exactly, and not a bit of the encoder moves."""
    trainer = PPO(SMALL, Choices.plain(), IdBandit(most=most))
    before = copy.deepcopy(trainer.model.state_dict())
    history = trainer.train(progress=False)
    assert torch.equal(history.weights["action"], before["action"]) == same
    frame = history.to_frame()
    assert (frame.entropy == 0).all() == same and (frame.approx_kl == 0).all() == same


class TopBits:
    """One step; ids whose highest bit is set are right."""

    obs_size, alternating = 1, False

    def reset(self, seed, episode, index):
        self.which = (episode + index) % 2

    def features(self):
        return [1.0]

    def legal(self):
        ids = [2**64 - 1, 2**63 - 1]
        return ids if self.which else ids[::-1]

    def step(self, action_id):
        return float(action_id >= 2**63), True


@pytest.mark.parametrize("named", MAKERS)
def test_the_highest_bit_is_seen(named):
    trainer, history = train(
        TopBits,
        getattr(Choices, named)(),
        total_timesteps=1500,
        learning_rate=0.02,
        num_steps=32,
        eval_episodes=5,
        hidden=(24,),
    )
    assert history.mean_return == 1.0
    assert trainer.act([1.0], [2**63 - 1, 2**64 - 1]) == 2**64 - 1


def test_games_in_every_form(monkeypatch):
    here = types.ModuleType("games_of_a_reader")
    here.TopBits, here.bandit = TopBits, IdBandit
    monkeypatch.setitem(sys.modules, "games_of_a_reader", here)
    forms = [TopBits, lambda: TopBits(), "games_of_a_reader:TopBits", IdBandit(), IdBandit, "games_of_a_reader:bandit"]
    for form in [*forms, ManyBandits(IdBandit(), 4, 1), GAME.batched(4, 1), GAME.native(4, 1)]:
        assert train(form)[1].env_steps == 96
    with pytest.raises(EnvError, match="TopBits is one game, and a trainer needs several: pass its class"):
        PPO(SMALL, env=TopBits())


def test_old_log_probs_that_an_env_cannot_have_are_refused():
    for choices in (None, Choices.fast(), Choices.naive()):
        with pytest.raises(
            ConfigError, match="old_log_probs='recomputed' needs sets of legal actions, and CartPole-v1"
        ):
            PPO(SMALL.replace(old_log_probs="recomputed"), choices, "CartPole-v1")


@pytest.mark.parametrize("named", MAKERS)
@pytest.mark.parametrize("env", ENVS)
def test_stopped_in_the_middle_it_goes_on_as_if_nothing_had_been(env, named):
    _, whole = train(ENVS[env], MAKERS[named]())
    trainer = PPO(SMALL, MAKERS[named](), ENVS[env])
    first = trainer.train(progress=False, on_log=lambda row: trainer.stop())
    assert first.interrupted and first.env_steps == 32
    rest = trainer.train(progress=False)
    assert (rest.env_steps, rest.updates, rest.interrupted) == (96, whole.updates, False)
    assert rest.weights_sha256 == whole.weights_sha256
    returns = [*first.episodes.episode_return, *rest.episodes.episode_return]
    assert returns == list(whole.episodes.episode_return)


def test_an_interrupt_ends_a_training_with_what_was_learnt():
    trainer = PPO(SMALL.replace(total_timesteps=10**8, log_frequency=10**8, eval_episodes=4), Choices.fast(), GAME)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    history = trainer.train(progress=False)
    timer.join()
    assert history.interrupted and 0 < history.env_steps < 10**8 and len(history.log_rows) == 1
    assert history.returns == [] and history.strength == {}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


GIVEN = {**ENVS, "bandits": lambda: ManyBandits(IdBandit(), 4, 1), "boards": lambda: GAME.batched(4, 1)}


def made(name):
    return GIVEN[name]() if name in ("bandits", "boards") else GIVEN[name]


@pytest.mark.parametrize("named", MAKERS)
@pytest.mark.parametrize("env", GIVEN)
def test_evaluations_in_between_leave_no_trace(env, named):
    """Above all in games that were given as they are: an evaluation plays others than those that are trained on."""
    _, without = train(made(env), MAKERS[named]())
    trainer, history = train(made(env), MAKERS[named](), eval_frequency=32, eval_episodes=3)
    assert list(history.evaluations.env_step) == [32, 64, 96]
    assert history.weights_sha256 == without.weights_sha256
    assert list(history.episodes.episode_return) == list(without.episodes.episode_return)
    assert trainer.evaluate(3) == trainer.evaluate(3) == history.returns


def test_games_that_were_given_are_evaluated_on_all_of_them():
    _, history = train(made("boards"), eval_episodes=10)
    assert history.eval_episodes == 16 and set(history.strength) == {"random"}  # twice all four, both colours


@pytest.mark.parametrize("progress", [False, None])
def test_matches_show_what_the_training_was_told_to_show(progress, monkeypatch):
    told = []

    def play_match(*given, progress, **rest):
        told.append(progress)
        return matches.play_match(*given, progress=False, **rest)

    monkeypatch.setattr("rlbench.trainers.strength.play_match", play_match)
    trainer = PPO(SMALL.replace(eval_episodes=2), env=GAME)
    assert trainer.evaluate(2) and told == [False]
    trainer.train(progress=progress)
    assert len(told) == 5 and set(told[1:]) == {progress}  # the final evaluation, and three opponents


def test_games_that_cannot_be_copied_are_not_evaluated_on():
    with pytest.raises(EnvError, match="Othello 4x4 cannot be copied to be evaluated on .*or set eval_episodes=0"):
        PPO(SMALL.replace(eval_episodes=1), env=GAME.native(4, 1))


def test_an_opponent_that_the_game_does_not_know(capsys):
    class Quiet(TopBits):
        name, alternating = "Quiet", True

    trainer, history = train(Quiet, eval_episodes=4)
    assert "Quiet has no opponent 'greedy': evaluations are against 'random'" in capsys.readouterr().err
    assert set(history.strength) == {"random"} and len(history.returns) == 4
    assert trainer.evaluate(0) == []


def test_the_share_of_the_optimum_is_asked_for_where_the_policy_lies():
    class Bandit(IdBandit):
        def optimum_share(self, policy, states, seed, device="nowhere"):
            assert policy.__closure__ and torch.device(device) == torch.device("cpu")
            return super().optimum_share(policy, states, seed, device)

    assert 0 < train(Bandit(), eval_episodes=2)[1].strength["optimum"]["share"] < 1.1


def test_matches_of_fewer_and_fewer_games_compile_nothing(monkeypatch):
    monkeypatch.setattr(compiling, "BACKEND", "eager")
    forget_compiled()
    if compiling.why_not("cpu"):
        pytest.skip("torch.compile does not work here")
    trainer = PPO(SMALL.replace(total_timesteps=32), Choices(evaluate="packed_compiled"), GAME)
    trainer.train(progress=False)
    shapes = len(trainer.evaluator.functions.used)
    assert len(trainer.evaluate(40)) == 40 and len(trainer.evaluator.functions.used) == shapes > 0
    assert trainer.recompiles == 0
    forget_compiled()


def test_what_is_logged():
    rows = []
    trainer = PPO(SMALL, env=GAME)
    trainer.train(progress=False, on_log=rows.append)
    assert [row["step"] for row in rows] == [32, 64, 96] and all(row["total"] == 96 for row in rows)
    named = {"loss", "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "first_ratio_error"}
    assert named | {"sps", "eta_s", "mean_return"} <= set(rows[0])
    assert rows[-1]["eta_s"] == 0


def test_without_tensorboard_one_line_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    trainer = PPO(SMALL, env=GAME)
    with pytest.raises(RuntimeError, match="pip install tensorboard"):
        trainer.train(progress=False, tensorboard=str(tmp_path))
    assert trainer.train(progress=False).env_steps == 96


@pytest.mark.parametrize("named", MAKERS)
def test_two_trainers_side_by_side_do_not_meet(named):
    (_, alone), (_, other) = train(GAME, MAKERS[named]()), train(IdBandit(), MAKERS[named](), seed=5)
    one, two = PPO(SMALL, MAKERS[named](), GAME), PPO(SMALL.replace(seed=5), MAKERS[named](), IdBandit())
    last = {}
    while one.env_steps < 96:
        for trainer in (one, two):
            last[trainer] = trainer.train(progress=False, on_log=lambda row, trainer=trainer: trainer.stop())
    assert last[one].weights_sha256 == alone.weights_sha256 and last[two].weights_sha256 == other.weights_sha256


def test_choices_survive_a_trip_to_another_process():
    choices = Choices.fast().replace(evaluate="packed", gae="scan")
    back = pickle.loads(pickle.dumps(choices))
    assert back == choices and back.explicit == {"evaluate", "gae"} and copy.deepcopy(choices) == choices


@pytest.mark.parametrize("named", MAKERS)
@pytest.mark.parametrize("env", ENVS)
def test_weights_that_are_loaded_in_place_are_those_that_act_and_learn(env, named):
    source, target = (PPO(SMALL.replace(seed=seed), MAKERS[named](), ENVS[env]) for seed in (3, 4))
    weights = {name: weight.clone() for name, weight in source.model.state_dict().items()}
    target.model.load_state_dict(weights)
    if env == "cart":
        obs = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)
        assert (target.act(obs) == source.act(obs)).all()
    else:
        obs, legal = source.rollouts.obs, source.rollouts.legal
        one, other = (trainer.evaluator.log_probs(obs, legal)[0] for trainer in (source, target))
        assert torch.equal(one, other) and torch.equal(argmax(one, legal.offsets), argmax(other, legal.offsets))
    history = target.train(progress=False)
    moved = [(history.weights[name] - weight).abs().max() for name, weight in weights.items()]
    assert 0 < max(moved) < 0.05  # from where they were loaded, 36 steps of 1e-3 at most


@pytest.mark.parametrize("named", ["naive", *MAKERS])
def test_a_training_that_diverges_names_what_to_lower(named):
    config = SMALL.replace(total_timesteps=20_000, learning_rate=1e6, num_steps=32, hidden=(32, 32), log_frequency=500)
    with pytest.raises(ConfigError, match=r"the loss is (nan|inf) at env step .*Lower learning_rate=1e\+06"):
        train(GAME, getattr(Choices, named)(), config)


class Broken(gymnasium.Env):
    """Two actions, the first of them illegal, and a policy whose numbers are none."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {"action_mask": np.array([False, True, False])}

    def step(self, action):
        assert action == 1, "an illegal action was chosen"
        return *self.reset()[:1], 0.0, False, False, self.reset()[1]


def test_a_policy_that_is_no_number_still_chooses_what_is_legal():
    trainer = PPO(SMALL, env=Broken)
    with torch.no_grad():
        trainer.model.actor[0].weight.fill_(float("nan"))
    with pytest.raises(ConfigError, match="the loss is nan"):
        trainer.train(progress=False)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "a run"
    settings = [
        "--total-timesteps",
        "64",
        "--num-envs",
        "4",
        "--num-steps",
        "8",
        "--hidden",
        "8,6",
        "--eval-episodes",
        "2",
    ]
    assert (
        main(["train", "ppo", "--env", "othello4", "--choices", "fast", "--out", str(folder), *settings, "--quiet"])
        == 0
    )
    return folder


def test_a_saved_run_plays_what_it_learnt(saved):
    player = rlbench.envs.saved_player(saved)
    obs, legal = GAME.batched(6, 3).reset()
    trainer = PPO(SMALL, env=GAME)
    trainer.model.load_state_dict(torch.load(saved / "weights.pt", weights_only=True))
    log_p, _ = trainer.evaluator.log_probs(obs, legal)
    assert torch.equal(player(obs, legal), legal.ids[legal.offsets[:-1] + argmax(log_p, legal.offsets)])


def test_a_saved_run_is_an_opponent(saved):
    env = rlbench.envs.OthelloEnv(size=4, opponent=str(saved))
    _, info = env.reset(seed=0)
    for _ in range(40):
        _, _, terminated, truncated, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
        if terminated or truncated:
            break
    assert terminated


@pytest.mark.parametrize("choices", [Choices.plain(), Choices.fast()])
def test_weights_that_are_not_loaded_in_place_are_refused(choices):
    """An update would go on changing the old ones, which nobody looks at any more."""
    config = PPOConfig(total_timesteps=32, num_envs=2, num_steps=8, batch_size=8, hidden=(8,), eval_episodes=0)
    trainer = PPO(config, choices, Othello(4))
    trainer.model.load_state_dict({name: w.clone() for name, w in trainer.model.state_dict().items()}, assign=True)
    with pytest.raises(ConfigError, match="load weights in place"):
        trainer.train(progress=False)
