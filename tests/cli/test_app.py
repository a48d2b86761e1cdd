"""The entry point: questions, help, exit codes, and what it takes to start."""

import json
import subprocess
import sys

import pytest

from rlbench.cli import app
from rlbench.cli.arguments import boolean, whole, wholes, with_hyphens
from rlbench.cli.output import plain


def test_bare_rlbench_asks_the_three_questions_with_commands_that_exist(cli):
    ran = cli()
    assert ran.code == 0
    asked = [line for line in ran.out.splitlines() if line and not line.startswith((" ", "rlbench", "`"))]
    assert len(asked) == 3
    commands = [line.split()[1] for line in ran.out.splitlines() if line.startswith("  rlbench")]
    assert set(commands) == {"machine", "report", "measure", "study", "gpu-check", "train", "profile", "tune"}


def test_the_commands_that_it_names_can_be_parsed():
    lines = [line.strip() for line in app.QUESTIONS.splitlines() if line.startswith("  rlbench")]
    for line in lines:
        words = line.split("   ")[0].split()[1:]
        assert callable(app.parse(words).run)


@pytest.mark.parametrize("words", [["--help"], ["train", "ppo", "--help"], ["study", "-h"], ["study", "ppo", "-h"]])
def test_help_is_no_failure(cli, words):
    ran = cli(*words)
    assert ran.code == 0 and "usage" in ran.out


@pytest.mark.parametrize(
    ("words", "says"), [(["trian"], "train"), (["train"], "TRAINER"), (["train", "sac"], "ppo"), (["--jsn"], "COMMAND")]
)
def test_what_is_no_command_is_refused(cli, words, says):
    ran = cli(*words)
    assert ran.code == 2 and says in ran.err and len(ran.err.splitlines()) == 1


def test_an_error_that_is_not_the_inputs_fault_is_not_hidden(cli, monkeypatch):
    def broken(args):
        raise ValueError("a fault of ours")

    monkeypatch.setattr("rlbench.cli.machine.run", broken)
    with pytest.raises(ValueError, match="fault of ours"):
        cli("machine")


def test_an_interrupt_elsewhere_is_one_line(cli, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr("rlbench.cli.machine.run", interrupted)
    ran = cli("machine")
    assert ran.code == 130 and ran.err == "rlbench: interrupted\n"


def test_machine_as_text_and_as_json(cli):
    assert "torch" in cli("machine").out
    document = cli("machine", "--json").document
    assert document["cuda"] in ("cuda", "no_gpu", "no_driver", "cpu_only_torch")
    assert document["remedy"] and isinstance(document["warnings"], list)


def test_the_module_runs_as_a_program(tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "rlbench", "machine", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "slug" in json.loads(run.stdout.splitlines()[-1])


def test_starting_imports_nothing_heavy():
    heavy = "{'gymnasium', 'matplotlib', 'papermill', 'ipywidgets', 'pyarrow'}"
    code = f"import sys, rlbench.cli.app; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() == "[]", run.stderr


def test_values_in_their_types():
    assert [boolean(text) for text in ("false", "False", "0", "true", "TRUE")] == [False, False, False, True, True]
    assert [whole(text) for text in ("0010", "1e5", "-3", "9223372036854775807")] == [10, 100_000, -3, 2**63 - 1]
    assert wholes("64, 32") == (64, 32)


def test_underscores_in_flags_are_hyphens_and_values_stay():
    words = ["--num_envs=8", "--set", "replay=ring_torch", "a_b", "-p", "x_y", "--", "--out=a_b"]
    expected = ["--num-envs=8", "--set", "replay=ring_torch", "a_b", "-p", "x_y", "--", "--out=a_b"]
    assert with_hyphens(words) == expected


def test_json_has_no_nan():
    import numpy as np

    value = {"a": float("nan"), "b": (np.float64(1.5), np.int64(2)), 3: np.array([1.0, np.inf])}
    assert plain(value) == {"a": None, "b": [1.5, 2], "3": [1.0, None]}
