"""`rlbench study`: rows and their summary, as text and as JSON."""

import json

import pytest

from rlbench import PPO_PRESETS
from rlbench.cli import study as command
from rlbench.study import MODES
from rlbench.study.plans import SWEPT

CORRIDOR = ["study", "--env", "cli_envs:Corridor"]
BACK = (
    "environments='one_by_one' instead of 'native', loop='python' instead of 'native': Corridor has no batched counterpart "
    "(CartPole-v1 and the trading env have)."
)


def test_rows_and_summary(cli, tiny, tmp_path):
    words = [
        "--mode",
        "alone",
        "--slots",
        "replay,transfer",
        "--seeds",
        "4,7",
        "--eval-frequency",
        50,
        "--to-return",
        0,
    ]
    ran = cli(*CORRIDOR, *tiny, *words, "--json", "--record")
    assert ran.code == 0, ran.err
    rows, summary = ran.document["rows"], ran.document["summary"]
    trained = [r for r in rows if r["not_measured"] is None]
    assert {r["seed"] for r in trained} == {4, 7} and len(trained) == 8
    assert [s["label"] for s in summary][:3] == ["plain", "plain again", "replay=deque"]
    assert summary[2]["reached"] == "2 of 2" and summary[2]["stamp"] == "quick: do not cite"
    assert {r["env"] for r in rows} == {"cli_envs:Corridor"}
    assert "needs CUDA" in ran.err and "do not cite" in ran.err
    lines = (tmp_path / "runs/study.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == [r["label"] for r in rows]
    assert len(list((tmp_path / "reports/measurements").rglob("*-training.json"))) == 1


def test_a_slot_without_use_is_named_once_and_not_timed(cli, tiny):
    ran = cli(*CORRIDOR, *tiny, "--mode", "alone", "--slots", "features,metrics,priorities", "--seeds", 1, "--json")
    assert [row["label"] for row in ran.document["summary"]] == ["plain", "plain again", "metrics=item_each_step"]
    told = [line for line in ran.err.splitlines() if "left out" in line]
    assert len(told) == 2 and "features: Corridor is not" in told[0] and "prioritized_replay_alpha=0" in told[1]


def test_settings_side_by_side_for_people(cli, tiny, told_again):
    """What is done otherwise than asked for is told though it was asked to be quiet."""
    ran = cli(*CORRIDOR, *tiny, "--mode", "presets", "--seeds", 1, "--choices", "fast", "--quiet")
    assert ran.code == 0
    assert "preset fast" in ran.out and "as given" in ran.out
    assert ran.err.splitlines() == [BACK]


@pytest.mark.parametrize("at", [100, 250])  # in the warm-up; in the first training
def test_an_interrupt_without_a_complete_training_says_so(cli, tiny, at, monkeypatch):
    monkeypatch.setenv("INTERRUPT_AT", str(at))
    ran = cli("study", "--env", "cli_envs:Interrupted", *tiny, "--seeds", 1, "--json", "--quiet")
    assert ran.code == 1 and ran.document == {"rows": [], "summary": []}


def test_an_interrupt_keeps_what_is_complete(cli, tiny, monkeypatch):
    # Steps: 12 of random play, 200 to warm up, then 200 and 12 of evaluation a training; the 700th is in the third.
    monkeypatch.setenv("INTERRUPT_AT", "700")
    ran = cli("study", "--env", "cli_envs:Interrupted", *tiny, "--seeds", 1, "--json", "--quiet")
    assert ran.code == 0
    assert 1 <= len(ran.document["rows"]) < 4


def test_the_modes_are_those_of_the_study():
    assert command.MODES["ppo"] == MODES
    assert command.MODES["dqn"] == tuple(mode for mode in MODES if "dqn" in SWEPT.get(mode, ("dqn",)))


TINY_PPO = ["--total-timesteps", 64, "--num-envs", 4, "--num-steps", 8, "--batch-size", 16, "--hidden", 8]


@pytest.mark.parametrize("env", ["othello4", "bandit", "cli_envs:Corridor"])
def test_ppo_on_games_and_on_other_envs(cli, env):
    words = ["--mode", "alone", "--slots", "minibatch", "--seeds", 2, "--eval-episodes", 4]
    ran = cli("study", "ppo", "--env", env, *TINY_PPO, *words, "--json", "--quiet")
    assert ran.code == 0, ran.err
    rows = ran.document["rows"]
    assert {row["env"] for row in rows} == {env}
    assert {row["seed"] for row in rows if row["not_measured"] is None} == {1, 2}
    assert rows[-1]["config"]["num_steps"] == 8 and rows[-1]["random_return"] is not None
    assert [row["label"] for row in ran.document["summary"]][:3] == ["plain", "plain again", "minibatch=stack_samples"]


def test_the_preset_is_that_of_the_game(cli):
    ran = cli("study", "ppo", "--env", "bandit", *TINY_PPO, "--seeds", 1, "--eval-episodes", 0, "--json", "--quiet")
    assert {row["config"]["learning_rate"] for row in ran.document["rows"]} == {PPO_PRESETS["bandit"]["learning_rate"]}


def test_without_a_trainer_it_is_dqn():
    assert command.with_trainer(["study", "--mode", "alone"]) == ["study", "dqn", "--mode", "alone"]
    assert command.with_trainer(["study"]) == ["study", "dqn"]
    for words in (["study", "ppo", "--seeds", "3"], ["study", "dqn"], ["study", "--help"], ["train", "ppo"]):
        assert command.with_trainer(words) == words


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--mode", "ladder"], "cumulative"),
        (["--seeds", "0"], "at least 1"),
        (["--seeds", "1,1"], "different"),
        (["--seed", "1"], "--seeds"),
        (["--slots", "replay"], "takes no slots"),
        (["--mode", "alone", "--slots", "reply"], "replay"),
        (["--mode", "alone", "--set", "replay=deque"], "sets the choices itself"),
        (["--mode", "alone", "--slots", "features"], "nothing to compare: features: CartPole-v1 is not"),
        (["--mode", "batch", "--set", "transfer=pinned"], "transfer='pinned' cannot be used"),
        (["--to-return", "100"], "--eval-frequency"),
        (["--batch-sizes", "3"], "--batch-size"),
        (["--mode", "epochs"], "invalid choice: 'epochs'"),
        (["--num-steps", "8"], "unknown flag '--num-steps'"),
        (["--env", "othello4"], "which DQN does not take"),
        (["--seeds", "3", "ppo"], "unknown argument 'ppo'"),
        (["ppo", "--train-frequency", "8"], "unknown flag '--train-frequency'"),
        (["ppo", "--n-steps", "8"], "did you mean --num-steps"),
        (["--n-steps", "8"], "did you mean --n-step "),
        (["ppo", "--mode", "alone", "--slots", "replay"], "ppo has no slot 'replay'"),
        (["ppo", "--preset", "trading"], "invalid choice: 'trading'"),
    ],
)
def test_refusals(cli, words, says):
    ran = cli("study", *words)
    assert ran.code == 2 and says in ran.err and len(ran.err.splitlines()) == 1
