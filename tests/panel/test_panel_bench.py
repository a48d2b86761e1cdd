"""The panel's work: runs and comparisons in a thread, stopping, failing, and what is kept."""

import time

import gymnasium
import pytest

from rlbench.config import ConfigError, DQNConfig
from rlbench.panel.bench import Bench, verdict_sentence
from rlbench.panel.comparison import Comparison
from rlbench.speedups import ChoiceError, Choices
from rlbench.trainers.dqn import DQN

SMALL = {"learning_starts": 50, "train_frequency": 10, "batch_size": 8, "hidden": (8,), "eval_episodes": 2}
LONG = 100_000_000
GUARD_S = 30  # so that a failing test ends


class Failing(gymnasium.Wrapper):
    """Raises in its third step."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        self.left = 3

    def step(self, action):
        self.left -= 1
        if not self.left:
            raise OSError("the data <feed> is gone\nsecond line")
        return super().step(action)


def until(condition) -> None:
    deadline = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@pytest.fixture
def endless():
    bench = Bench(config=SMALL, steps=LONG)
    yield bench
    bench.stop()
    assert bench.wait(GUARD_S)


def test_run_trains_and_evaluates_as_the_command_does():
    bench = Bench(config=SMALL, steps=300, choices="fast")
    assert bench.status().state == "idle"
    bench.run()
    assert bench.wait(GUARD_S)
    status = bench.status()
    assert (status.state, status.job, status.done, status.share) == ("done", "run", 300, 1.0)
    assert status.line() == "100 % · done"
    history = DQN(bench.config, Choices.fast()).train(progress=False)
    row = bench.run_table().iloc[0]
    assert (row["choices"], row["steps"], row["episodes"], row["note"]) == ("fast", 300, 2, "")
    assert row["mean_return"] == history.mean_return
    assert "mean return" in status.text


def test_compare_adds_a_rung_for_each_comparison():
    bench = Bench(config=SMALL, steps=120, choices="fast", rounds=2)
    rounds = []
    for _ in range(2):
        bench.compare(lambda one: rounds.append(one.rounds))
        assert bench.wait(GUARD_S)
    table = bench.table()
    assert table["choices"].tolist() == ["fast", "fast (2)"]
    assert table["rounds"].tolist() == [2, 2]
    assert rounds == [1, 2, 1, 2]
    assert bench.status().done == bench.status().total == (2 + 3 * 2) * 120
    assert (table["mean_return"] > 0).all() and (table["plain_return"] == table["mean_return"]).all()
    assert (table["note"] == "quick: do not cite").all()


def test_what_is_chosen_while_it_works_does_not_change_the_work(endless):
    endless.use("fast")
    endless.run()
    endless.use("naive")
    until(lambda: endless.status().done > 0)
    endless.stop()
    assert endless.wait(GUARD_S)
    assert endless.runs[0]["choices"] == "fast"


def test_stop_keeps_what_there_is(endless):
    endless.run()
    until(lambda: endless.status().done > 100)
    assert endless.status().state == "working"
    endless.stop()
    assert endless.wait(GUARD_S)
    row = endless.run_table().iloc[0]
    assert endless.status().state == "stopped"
    assert row["note"] == f"stopped at {row['steps']:,} steps"
    assert 100 < row["steps"] < LONG and row["episodes"] == 0


def test_stop_before_the_trainer_is_there(endless):
    endless.run()
    endless.stop()
    assert endless.wait(GUARD_S)
    assert endless.status().state == "stopped"


def test_stop_in_the_evaluation():
    bench = Bench(config={**SMALL, "eval_episodes": 100_000}, steps=60)
    bench.run()
    until(lambda: bench.status().text.startswith("evaluating"))
    bench.stop()
    assert bench.wait(GUARD_S)
    assert bench.runs[0]["note"] == "evaluation stopped"


def test_stop_of_a_comparison_without_a_round_shows_nothing(endless):
    endless.compare()
    until(lambda: endless.status().done > 0)
    endless.stop()
    assert endless.wait(GUARD_S)
    assert len(endless.table()) == 0
    assert "nothing to show" in endless.status().text


def test_an_error_in_the_thread_is_one_sentence():
    bench = Bench(env=Failing, config=SMALL, steps=300)
    work = bench.run()
    assert bench.wait(GUARD_S)
    assert (bench.status().state, bench.status().text) == ("failed", "OSError: the data <feed> is gone")
    assert isinstance(work.error, OSError)
    assert bench.runs == []


def test_work_begins_once_and_ends_that_of_another_panel(endless):
    first = endless.run()
    with pytest.raises(RuntimeError, match="at work"):
        endless.compare()
    other = Bench(config=SMALL, steps=60)
    other.run()
    assert first.state == "stopped"
    assert other.wait(GUARD_S)
    assert other.status().state == "done"


def test_choices_that_cannot_run_do_not_start():
    bench = Bench(choices={"transfer": "pinned"})
    with pytest.raises(ChoiceError, match="transfer='pinned' cannot be used"):
        bench.run()
    assert bench.work is None


def test_settings_come_from_the_envs_preset_unless_a_config_is_given():
    assert Bench().config.train_frequency == DQNConfig.preset("cartpole").train_frequency != DQNConfig().train_frequency
    assert Bench(config=DQNConfig()).config == DQNConfig(total_timesteps=5_000)
    assert Bench(env=Failing).config == DQNConfig(total_timesteps=5_000)


def test_a_single_env_is_left_as_it_was():
    env = gymnasium.make("CartPole-v1")
    bench = Bench(env=env, config=SMALL, steps=60)
    bench.run()
    assert bench.wait(GUARD_S)
    assert bench.status().state == "done"
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    assert bench.title == "DQN on an env of this notebook · 60 steps · cpu"


@pytest.mark.parametrize("bad", [{"rounds": 0}, {"rounds": 1.5}, {"rounds": True}, {"steps": 0}, {"config": {"lr": 1}}])
def test_bad_arguments_are_refused(bad):
    with pytest.raises(ConfigError):
        Bench(**bad)


def test_sentence_of_a_comparison():
    one = Comparison("fast", {}, 100, [(2.0, 1.0, 2.0)], [(3.0, 4.0, 3.0)])
    expected = "fast: 2.000x plain [2.000, 2.000], too few rounds; return 4 against 3; 1 round (quick: do not cite)."
    assert verdict_sentence(one) == expected
