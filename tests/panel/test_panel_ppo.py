"""The panel with PPO: its slots, on games and on other envs, run, compared, and as lines to copy."""

import shlex
import time

import pytest
import torch

from rlbench import PPO, SPEEDUPS, ChoiceError, Choices, ConfigError, DQNConfig, PPOConfig
from rlbench.cli.app import parse
from rlbench.cli.arguments import choices_of, given
from rlbench.envs.bandit import IdBandit
from rlbench.envs.othello import Othello
from rlbench.native.policy import why_no_policy
from rlbench.panel.bench import Bench
from rlbench.panel.lines import env_name
from rlbench.widgets import Panel
from rlbench.workloads import GAMES, workload

SMALL = {"num_envs": 4, "num_steps": 8, "batch_size": 16, "hidden": (8,), "update_epochs": 1, "eval_episodes": 4}
OF_PPO = tuple(name for name, slot in SPEEDUPS.items() if "ppo" in slot.workloads)
GUARD_S = 30
native = pytest.mark.skipif(why_no_policy() is not None, reason="no C compiler")


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


def bench(env="othello4", **more) -> Bench:
    return Bench("ppo", env, **{"config": SMALL, "steps": 64, "rounds": 1, **more})


def until(condition) -> None:
    deadline = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def test_the_slots_are_ppos_and_settings_come_from_the_games_preset():
    one = Bench("ppo", "othello4")
    assert one.slots == OF_PPO
    assert one.config == PPOConfig.preset("othello4", total_timesteps=5_000)
    assert Bench("ppo", workload("othello4").env).config == one.config
    assert Bench(config=PPOConfig(num_envs=2), env=Two).config == PPOConfig(num_envs=2, total_timesteps=5_000)
    assert Bench(config=PPOConfig()).workload == "ppo" and Bench().workload == "dqn"


def test_what_is_no_trainer_or_anothers_config_is_refused():
    with pytest.raises(ChoiceError, match="no workload 'sarsa': workloads are dqn, ppo"):
        Bench("sarsa")
    with pytest.raises(ConfigError, match="workload='ppo' with a DQNConfig: accepted is PPOConfig"):
        Bench("ppo", config=DQNConfig())
    with pytest.raises(ConfigError, match="PPOConfig has no setting 'tau'"):
        Bench("ppo", config={"tau": 1.0})
    with pytest.raises(ChoiceError, match="no slot 'replay' of ppo"):
        Bench("ppo", slots=["replay"])


def test_dqn_on_a_game_cannot_be_run_and_says_so():
    one = Bench("dqn", "othello4")
    assert "which DQN does not take" in one.problem()
    with pytest.raises(ChoiceError, match="which DQN does not take"):
        one.run()


def test_variants_that_a_game_lacks_are_left_out_with_the_reason():
    games = bench("bandit").slot("games")
    assert games.offered == ("one_by_one", "batched") and "no native code" in games.remark()[0]
    assert bench(Two).slot("games").offered == ("one_by_one",)
    assert "CUDA" in bench().slot("evaluate").left_out["packed_triton"]
    for name in ("environments", "features", "market_io"):
        slot = bench().slot(name)
        assert slot.fixed and slot.unused


def test_slots_of_games_have_no_use_on_other_envs():
    one = bench("CartPole-v1")
    for name in ("games", "action_encoding", "evaluate"):
        assert one.slot(name).fixed and one.slot(name).unused
    assert "by_count" in one.slot("minibatch").left_out and one.slot("environments").unused is None


@native
def test_no_loop_stands_in_the_way_of_ppo():
    one = bench(choices="fast")
    assert (one.name, one.problem()) == ("fast", None)
    minibatch = one.slot("minibatch")
    assert minibatch.fixed and minibatch.unused.startswith("ppo_update='native' takes its rows itself")
    one.select("ppo_update", "eager")
    assert one.slot("minibatch").unused is None and one.in_use()["evaluate"] == "packed_native"
    one.use("fast")
    assert one.name == "fast"


@pytest.mark.parametrize("env", ["othello4", "bandit", Two, "CartPole-v1"])
def test_run_trains_and_evaluates_as_the_trainer_does(env):
    one = bench(env, choices="naive")
    one.run()
    assert one.wait(GUARD_S)
    row, status = one.run_table().iloc[0], one.status()
    assert (status.state, status.done, status.share, row["episodes"], row["note"]) == ("done", 64, 1.0, 4, "")
    history = PPO(one.config, Choices.naive(), one.train_env).train(progress=False)
    assert row["mean_return"] == history.mean_return and row["steps"] == history.env_steps


def test_steps_are_those_of_whole_rounds():
    one = bench(steps=33)
    assert one.steps == 64 and one.title == "PPO on othello4 · 64 steps · cpu"
    one.run()
    assert one.wait(GUARD_S)
    assert (one.status().done, one.status().total) == (64, 64)


def test_compare_shows_the_final_policys_return_where_two_play():
    one = bench(choices="minibatch=copies", config={**SMALL, "eval_opponent": "random"}, rounds=2)
    one.compare()
    assert one.wait(GUARD_S) and one.status().state == "done", one.status().text
    row = one.table().iloc[0]
    finals = [
        PPO(one.config.replace(seed=one.config.seed + k), env=one.train_env).train(progress=False).mean_return
        for k in (0, 1)
    ]
    assert row["mean_return"] == row["plain_return"] == sum(finals) / 2
    assert (row["steps"], row["rounds"]) == (64, 2) and one.status().done == (2 + 3 * 2) * 64


def test_stop_in_the_evaluation_of_a_game():
    one = bench("bandit", config={**SMALL, "eval_episodes": 1_000_000})
    one.run()
    until(lambda: one.work.evaluated is not None)
    one.stop()
    assert one.wait(GUARD_S)
    assert one.runs[0]["note"] == "evaluation stopped" and one.runs[0]["episodes"] == 0


def test_names_of_games():
    assert [env_name(workload(name).env) for name in GAMES] == list(GAMES)
    assert env_name(Othello(4, opponent="greedy")) is None and env_name(IdBandit(contexts=2)) is None


@pytest.mark.parametrize("env", ["othello4", workload("othello6").env, "CartPole-v1"])
@pytest.mark.parametrize("choices", ["naive", "plain", "fast", "minibatch=copies,gae=loop"])
def test_the_command_line_understands_its_line(env, choices):
    one = bench(env, choices=choices)
    args = parse(shlex.split(one.command_line())[1:])
    assert one.preset.replace(**given(args, PPOConfig)) == one.config
    where = (one.config, torch.device("cpu"), one.source)
    assert choices_of(args, "cpu").usable(*where).in_use(*where) == one.in_use()
    assert args.env == env_name(env)


@pytest.mark.parametrize("env", ["othello4", "CartPole-v1", Two])
@pytest.mark.parametrize("choices", ["naive", "minibatch=copies,gae=loop"])
def test_the_python_lines_train_as_the_panel_does(env, choices, capfd):
    one = bench(env, choices=choices)
    names = {"env": env}
    exec(one.lines()[1], names)  # the lines that a reader copies
    history = names["history"]
    assert history.config == {**history.config, **SMALL, "total_timesteps": 64}
    assert history.choices == one.in_use()


def test_python_lines_of_dqn_and_of_markets():
    line = Bench(steps=500, choices="replay=deque").python_lines()
    assert line.splitlines()[-1] == (
        "history = rlbench.DQN(rlbench.DQNConfig.preset('cartpole', total_timesteps=500, seed=1), "
        "rlbench.Choices.plain().replace(replay='deque'), env='CartPole-v1').train()"
    )
    line = Bench(env="ou", steps=500, choices="naive").python_lines()
    assert "work = workload('ou')" in line and "env=work.env, eval_env=work.eval_env" in line


def test_the_widgets_show_ppos_slots_and_its_lines():
    panel = Panel("ppo", "othello4", config=SMALL, steps=64, interactive=True)
    assert tuple(panel.dropdowns) == OF_PPO
    panel.dropdowns["games"].value = "one_by_one"
    assert panel.choices.games == "one_by_one" and "games=one_by_one" in panel.message.value
    panel.copy_button.value = True
    assert "rlbench train ppo --env othello4" in panel.lines["terminal"].value
    assert "rlbench.PPO(" in panel.lines["python"].value
    assert panel.dropdowns["environments"].disabled and "not used" in panel.hints["environments"].value
    panel.run_button.click()
    until(lambda: panel.bar.bar_style == "success")
    assert "mean return" in panel.message.value
