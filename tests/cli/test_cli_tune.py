"""`rlbench tune`: a file of choices, rows, a document; what it refuses."""

import json

import pytest

from rlbench import Choices

TUNE = ["tune", "dqn", "--budget", "3", "--slots", "optimizer,replay", "--try-threads", "1"]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr("rlbench.cli.tune.LEAST_S", 0.5)


def test_a_file_that_train_takes(cli, tiny, tmp_path):
    ran = cli(*TUNE, *tiny, "--json", "--quiet")
    assert ran.code == 0, ran.err
    found = ran.document
    assert found["file"] == "choices.yaml" and found["threads"] == 1 and found["seed"] == 1
    assert found["final"]["rounds"] > 0 and len(found["rows"]) > 2 and found["seconds"] > 0
    lines = (tmp_path / "runs/tune.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == [row["label"] for row in found["rows"]]
    text = (tmp_path / "choices.yaml").read_text()
    assert "Use with: rlbench train dqn --choices choices.yaml --threads 1" in text and str(tmp_path) not in text
    assert Choices.load(tmp_path / "choices.yaml").explicit == set(found["choices"])
    trained = cli("train", "dqn", "--choices", "choices.yaml", *tiny, "--json", "--quiet")
    assert trained.code == 0 and trained.document["choices"] == found["choices"]


def test_for_people_and_for_ppo(cli):
    words = ["--num-steps", 8, "--num-envs", 4, "--batch-size", 16, "--hidden", 8, "--total-timesteps", 2000]
    more = ["--slots", "optimizer", "--try-threads", 1, "--choices-file", "ppo.yaml", "--eval-episodes", 0]
    ran = cli("tune", "ppo", "--env", "othello4", "--budget", 2, *words, *more)
    assert ran.code == 0, ran.err
    assert "ratio to the first of each race" in ran.out and "written: ppo.yaml" in ran.out


def test_nothing_is_replaced_unasked(cli, tiny, tmp_path):
    (tmp_path / "choices.yaml").write_text("replay: deque\n")
    ran = cli(*TUNE, *tiny)
    assert ran.code == 2 and "--force" in ran.err and (tmp_path / "choices.yaml").read_text() == "replay: deque\n"
    assert cli(*TUNE, *tiny, "--force", "--quiet").code == 0
    assert "Found by" in (tmp_path / "choices.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tune", "dqn", "--budget", "0.1"], "--budget 0.1"),
        (["tune", "dqn", "--slots", "gae"], "dqn has no slot gae"),
        (["tune", "dqn", "--try-threads", "0"], "--try-threads"),
        (["tune", "dqn", "--env", "othello4"], "DQN does not take"),
        (["tune", "ppo", "--bugdet", "3"], "did you mean --budget"),
        (["tune", "sac"], "invalid choice"),
    ],
)
def test_refusals(cli, words, says):
    ran = cli(*words)
    assert ran.code == 2 and says in ran.err and len(ran.err.splitlines()) == 1
