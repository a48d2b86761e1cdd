"""`rlbench train dqn`: settings reach the training, the run is kept, an interrupt loses nothing."""

import json
import re

import pandas as pd
import pytest
import torch

from rlbench import Choices, DQNConfig
from rlbench.cli import train as command
from rlbench.config import make_config

KEYS = [
    "env_steps",
    "updates",
    "train_s",
    "compile_s",
    "sps",
    "total_s",
    "mean_return",
    "eval_episodes",
    "seed",
    "config",
    "choices",
    "machine",
    "weights_sha256",
    "interrupted",
    "network",
    "recompiles",
    "skipped_updates",
]
CORRIDOR = ["train", "dqn", "--env", "cli_envs:Corridor"]


def test_json_is_the_last_line_and_the_only_one(cli, tiny):
    ran = cli(*CORRIDOR, *tiny, "--json", "--seed", 5)
    assert ran.code == 0
    assert ran.out.count("\n") == 1
    document = ran.document
    assert [key for key in KEYS if key not in document] == []
    assert (document["env_steps"], document["eval_episodes"], document["seed"]) == (200, 3, 5)
    assert document["config"]["hidden"] == [8]
    assert document["interrupted"] is False
    assert len(document["weights_sha256"]) == 64
    assert "mean return" in ran.err and "batch_size=8" in ran.err
    assert document["network"]["parameters"] == (1 + 1) * 8 + (8 + 1) * 2
    assert (document["recompiles"], document["skipped_updates"]) == (0, 0)


def test_the_help_explains_every_key_of_the_document(cli, tiny):
    document = cli("train", "dqn", "--env", "ou", *tiny, "--json", "--quiet").document
    explained = re.findall(r"\w+", cli("train", "dqn", "--help").out.split("With --json:")[1])
    assert [key for key in (*document, *document["network"]) if key not in explained] == []


def test_without_json_the_result_is_for_people(cli, tiny):
    ran = cli(*CORRIDOR, *tiny, "--quiet")
    assert ran.err == ""
    assert "200" in ran.out and "{" not in ran.out
    assert "mlp 8, 34 parameters" in ran.out and "compiling" not in ran.out and "skipped" not in ran.out


def test_settings_arrive_in_their_types(cli, tiny):
    words = ["--n_step", "2", "--double_dqn=false", "--huber", "--learning-rate", "1e-4", "--buffer-size", "0010"]
    config = cli(*CORRIDOR, *tiny, *words, "--hidden", "6,5", "--json", "--quiet").document["config"]
    assert config["n_step"] == 2
    assert config["double_dqn"] is False and config["huber"] is True
    assert config["learning_rate"] == 0.0001
    assert config["buffer_size"] == 10
    assert config["hidden"] == [6, 5]


def test_num_envs_shows_up_in_what_was_run(cli, tiny):
    document = cli(*CORRIDOR, *tiny, "--num-envs", 8, "--json", "--quiet").document
    assert document["config"]["num_envs"] == 8 and document["env_steps"] == 200


def test_a_preset_sets_several_and_flags_go_before_it(cli, tiny):
    config = cli(*CORRIDOR, *tiny, "--preset", "fast", "--json", "--quiet").document["config"]
    assert (config["num_envs"], config["train_frequency"], config["batch_size"]) == (8, 16, 8)


def test_choices_by_name_by_slot_and_from_the_file_of_a_run(cli, tiny):
    words = [*CORRIDOR, *tiny, "--json", "--quiet"]
    fast = cli(*words, "--choices", "fast", "--set", "replay=ring_torch", "--out", "kept").document
    assert fast["choices"]["replay"] == "ring_torch" and fast["choices"]["update"] == "native"
    again = cli(*words, "--choices", "kept/choices.yaml").document
    assert again["choices"] == fast["choices"]
    assert again["weights_sha256"] == fast["weights_sha256"]


@pytest.mark.parametrize("env", ["CartPole-v1", "ou"])
@pytest.mark.parametrize("choices", ["naive", "plain", "fast"])
@pytest.mark.parametrize("more", [[], ["--prioritized-replay-alpha", "0.5"]])
def test_the_file_of_a_run_trains_again_on_the_same_env_and_settings(cli, tiny, env, choices, more):
    words = ["train", "dqn", "--env", env, *tiny, *more, "--json", "--quiet"]
    first = cli(*words, "--choices", choices, "--out", "kept").document
    again = cli(*words, "--choices", "kept/choices.yaml").document
    assert again["choices"] == first["choices"]
    assert again["weights_sha256"] == first["weights_sha256"]


def test_what_was_compiled_and_skipped_is_said():
    network = {"network": "mlp", "hidden": "8", "parameters": 34, "forward_flops": 50, "update_flops": 1_000}
    summary = {
        "env": "E",
        "seed": 1,
        "interrupted": False,
        "env_steps": 5,
        "updates": 4,
        "train_s": 1.0,
        "total_s": 9.0,
    }
    summary |= {"compile_s": 7.5, "recompiles": 2, "skipped_updates": 3, "sps": None, "mean_return": None}
    summary |= {"eval_episodes": 0, "choices": {"loop": "fused"}, "network": network, "weights_sha256": "0" * 64}
    told = command.text(summary)
    assert "1.00 s of training, 9.00 s in all, 7.50 s of it compiling, 2 compiled again" in told
    assert "3 updates, for infinite gradients" in told


def test_a_kept_run_can_be_read_back(cli, tiny, tmp_path):
    ran = cli(*CORRIDOR, *tiny, "--eval-frequency", 100, "--out", "runs/new/first", "--json")
    folder = tmp_path / "runs/new/first"
    assert json.loads((folder / "summary.json").read_text()) == ran.document
    config = make_config(DQNConfig, json.loads((folder / "config.json").read_text()))
    assert (config.total_timesteps, config.hidden) == (200, (8,))
    assert Choices.load(folder / "choices.yaml").to_dict() == Choices.plain().to_dict()
    weights = torch.load(folder / "weights.pt", weights_only=True)
    assert [tuple(tensor.shape) for tensor in weights.values()] == [(8, 1), (8,), (2, 8), (2,)]
    assert pd.read_csv(folder / "history.csv")["env_step"].iloc[-1] == 200
    assert len(pd.read_csv(folder / "episodes.csv")) == 50
    assert pd.read_csv(folder / "evaluations.csv")["env_step"].tolist() == [100, 200]


def test_a_folder_with_something_in_it_is_not_overwritten_unasked(cli, tiny, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    refused = cli(*CORRIDOR, *tiny, "--out", "full")
    assert refused.code == 2 and "not empty" in refused.err and "--force" in refused.err
    assert sorted(p.name for p in (tmp_path / "full").iterdir()) == ["mine.txt"]
    assert cli(*CORRIDOR, *tiny, "--out", "full", "--force").code == 0
    assert (tmp_path / "full/weights.pt").exists() and (tmp_path / "full/mine.txt").exists()


def test_a_file_is_no_folder(cli, tiny, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file" in cli(*CORRIDOR, *tiny, "--out", "file").err


def test_an_interrupt_still_says_what_was_learnt(cli, tiny):
    ran = cli("train", "dqn", "--env", "cli_envs:Interrupted", *tiny, "--json", "--out", "kept")
    assert ran.code == 0
    assert ran.document["interrupted"] is True
    assert ran.document["env_steps"] == 100
    assert ran.document["mean_return"] is None and ran.document["eval_episodes"] == 0
    assert ran.document["updates"] > 0 and len(ran.document["weights_sha256"]) == 64


def test_a_market_is_scored_on_its_test_part(cli, tiny):
    ran = cli("train", "dqn", "--env", "ou", *tiny, "--json")
    assert ran.document["test"]["episodes"] == 3
    assert "buy_and_hold" in ran.document["test"]
    assert "validation 4,000 bars" in ran.err


def test_prices_from_a_file(cli, tiny, tmp_path):
    days = pd.date_range("2024-01-01", periods=120, freq="D").strftime("%Y-%m-%d")
    lines = [f"{day},{c},{c},{c},{c},1000" for day, c in zip(days, range(100, 220), strict=True)]
    (tmp_path / "prices.csv").write_text("\n".join(["Date,Open,High,Low,Close,Volume", *lines]) + "\n")
    ran = cli("train", "dqn", "--prices", "prices.csv", *tiny, "--json")
    assert ran.code == 0, ran.err
    assert ran.document["env"] == "trading" and ran.document["preset"] == "trading"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--n-envs", "8"], "--num-envs"),
        (["--total_stepz", "100"], "--total-timesteps"),
        (["--lr", "1e-4"], "--learning-rate"),
        (["--batch-size", "0"], "batch_size must be at least 1"),
        (["--batch-size", "many"], "not a whole number"),
        (["--double-dqn", "maybe"], "neither true nor false"),
        (["--hidden", "64;64"], "not a whole number"),
        (["--start-e", "0.01"], "exploration may only fall"),
        (["--set", "reply=deque"], "did you mean replay"),
        (["--set", "replay"], "SLOT=VARIANT"),
        (["--set", "transfer=pinned"], "needs CUDA"),
        (["--choices", "fastest"], "neither naive, plain or fast, nor a file"),
        (["--set", "replay=ring_torch", "--set", "conversion=stack_once"], "needs no conversion|need no conversion"),
        (["--preset", "quick"], "cartpole"),
        (["--env", "CartPole-v9"], "CartPole-v9|CartPole"),
        (["--env", "cli_envs:Nothing"], "Nothing"),
        (["--env", "Pendulum-v1"], "Discrete"),
        (["--prices", "missing.csv"], "missing.csv"),
        (["--device", "tpu"], "cuda"),
        (["--force"], "--out"),
        (["more"], "unknown argument 'more'"),
    ],
)
def test_refusals_are_one_sentence_and_leave_with_two(cli, words, says):
    ran = cli("train", "dqn", *words)
    assert ran.code == 2
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1 and ran.err.startswith("rlbench")
    assert re.search(says, ran.err), ran.err


def test_a_folder_that_cannot_be_made_is_refused_before_training(cli, tiny, tmp_path):
    (tmp_path / "file").write_text("")
    ran = cli(*CORRIDOR, *tiny, "--out", "file/run")
    assert ran.code == 2 and "file/run" in ran.err and len(ran.err.splitlines()) == 1


def test_a_training_without_updates_says_so_in_a_line(cli, tiny):
    ran = cli(*CORRIDOR, *tiny, "--learning-starts", 500, "--quiet", "--json")
    assert ran.code == 0 and ran.document["updates"] == 0
    assert ran.err.startswith("rlbench: nothing will be learnt: total_timesteps=200") and len(ran.err.splitlines()) == 1


def test_nan_from_the_env_is_a_refusal(cli, tiny, tmp_path):
    source = (tmp_path / "cli_envs.py").read_text().replace("float(action), self.at == 4", "float('nan'), self.at == 4")
    (tmp_path / "cli_envs.py").write_text(source)
    ran = cli(*CORRIDOR, *tiny, "--quiet", "--json")
    assert ran.code == 2 and ran.out == ""
    assert "reward is nan of env 0 at env step 1;" in ran.err and len(ran.err.splitlines()) == 1


def test_threads_are_one_unless_asked_for(cli, tiny, monkeypatch):
    """Several threads stand still where something else is running: one by default, torch's own number with 0."""
    chosen = []
    monkeypatch.setattr("torch.set_num_threads", chosen.append)
    for words in ([], ["--threads", "2"], ["--threads", "0"]):
        assert cli(*CORRIDOR, *tiny, "--quiet", *words).code == 0
    assert chosen == [1, 2]
    ran = cli(*CORRIDOR, *tiny, "--threads", "-1")
    assert ran.code == 2 and "--threads -1: accepted are 0" in ran.err
