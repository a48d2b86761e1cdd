"""`rlbench study`: rows and their summary, as text and as JSON."""

import json

import pytest

from rlbench.cli import study as command
from rlbench.study import MODES

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
    assert command.MODES == MODES


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
    ],
)
def test_refusals(cli, words, says):
    ran = cli("study", *words)
    assert ran.code == 2 and says in ran.err and len(ran.err.splitlines()) == 1
