import json
import subprocess
import sys
from pathlib import Path

import pytest

from rlbench.cli.profile import with_script

ROOT = Path(__file__).parents[2]
LOOP = """
import sys, torch
from torch import nn
class Env:
    def reset(self):
        self.at = 0
        return torch.zeros(2)
    def step(self, action):
        self.at += 1
        return torch.zeros(2), 0.0, self.at > 9, {}
def main(steps):
    net, env = nn.Linear(2, 2), Env()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    obs = env.reset()
    for _ in range(steps):
        with torch.no_grad():
            action = int(net(obs).argmax())
        obs, *_ = env.step(action)
        optimizer.zero_grad()
        net(torch.rand(8, 2)).square().mean().backward()
        optimizer.step()
"""


def script(tmp_path, end):
    path = tmp_path / "theirs.py"
    path.write_text(LOOP + end)
    return path


def run(*words, cwd=None):
    line = [sys.executable, "-m", "rlbench", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd or ROOT, timeout=120, check=False)


@pytest.mark.parametrize(
    ("words", "own", "theirs"),
    [
        (["profile", "a.py"], ["profile", "script", "a.py"], []),
        (
            ["profile", "a.py", "--seconds", "3", "--", "--json", "-x_y"],
            ["profile", "script", "a.py", "--seconds", "3"],
            ["--json", "-x_y"],
        ),
        (["profile", "--seconds", "3", "a.py"], ["profile", "script", "--seconds", "3", "a.py"], []),
        (["profile", "-m", "pkg.train"], ["profile", "script", "-m", "pkg.train"], []),
        (["profile", "dqn", "--env", "x"], ["profile", "dqn", "--env", "x"], []),
        (["profile", "--help"], ["profile", "--help"], []),
        (["profile", "a.py", "--out", "dqn"], ["profile", "script", "a.py", "--out", "dqn"], []),
        (["profile", "--out", "ppo", "a.py"], ["profile", "script", "--out", "ppo", "a.py"], []),
        (["profile", "a", "--", "--", "x"], ["profile", "script", "a"], ["--", "x"]),
        (["profile", "script", "a.py"], ["profile", "script", "a.py"], []),
        (["train", "dqn"], ["train", "dqn"], []),
    ],
)  # fmt: skip
def test_whose_words_are_whose(words, own, theirs):
    assert with_script(words) == (own, theirs)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["gone.py"], "there is no script 'gone.py'"),
        (["sac"], "accepted: dqn, ppo, or the path of a Python file"),
        (["-m", "no.such.module"], "there is no module 'no.such.module'"),
        (["dqn", "--seconds", "0"], "--seconds 0"),
        (["dqn", "--seconds", "inf"], "--seconds inf"),
        (["dqn", "--seconds", "1", "--", "theirs"], "only a script has arguments of its own"),
        (["dqn", "--env", "nope"], "nope"),
        (["cli_envs.py", "--steps", "3"], "what is meant for the script goes after `--`"),
        (["cli_envs.py", "3"], "what is meant for the script goes after `--`"),
        (["cli_envs.py", "--out", "cli_envs.py"], "that is a file; give the name of a folder"),
        (["cli_envs.py", "--html", "."], ". is a folder; give the name of a file"),
        (["cli_envs.py", "--trace", "cli_envs.py"], "--force"),
        (["dqn", "--hiden", "3"], "did you mean --hidden"),
    ],
)
def test_refusals(cli, words, says):
    ran = cli("profile", *words)
    assert ran.code == 2 and says in ran.err


def test_a_script_with_its_own_arguments(tmp_path):
    path = script(tmp_path, "print('theirs', sys.argv[1:], flush=True)\nmain(10**7)\n")
    out = tmp_path / "kept"
    ran = run("profile", path, "--seconds", "3", "--json", "--out", out, "--", "--json", "--a_b", "--seconds=1")
    assert ran.returncode == 0, ran.stderr
    assert "theirs ['--json', '--a_b', '--seconds=1']" in ran.stdout
    document = json.loads(ran.stdout.splitlines()[-1])
    assert sum(p["share"] for p in document["phases"]) == pytest.approx(1.0, abs=0.02)
    assert {"env", "action", "forward", "backward", "optimizer"} <= {p["name"] for p in document["phases"]}
    assert sorted(path.name for path in out.iterdir()) == ["profile.html", "profile.json", "trace.json"]
    again = run("profile", path, "--out", out)
    assert again.returncode == 2 and "--force" in again.stderr


def test_a_script_that_raises(tmp_path):
    ran = run("profile", script(tmp_path, "main(300)\nraise KeyError('planted')\n"))
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr and "It ended early: KeyError" in ran.stdout


@pytest.mark.parametrize(
    ("end", "code"), [("main(300)\nsys.exit(0)\n", 0), ("main(300)\nsys.exit(3)\n", 1), ("x = 1\n", 0)]
)
def test_how_a_script_ends(tmp_path, end, code):
    ran = run("profile", script(tmp_path, end))
    assert ran.returncode == code, ran.stderr
    assert "Profile of script theirs.py" in ran.stdout


WILFUL = """
import os, warnings
os.makedirs("elsewhere"); os.chdir("elsewhere")
warnings.warn("planted")
main(300)
print("half a line", end="")
sys.stdout = open("their.log", "w")
"""


def test_what_a_script_does_to_its_process_is_its_own(tmp_path):
    path = script(tmp_path, WILFUL)
    ran = run("profile", path, "--json", "--out", "kept", "--no-threads", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("half a line\n")
    assert json.loads(ran.stdout.splitlines()[-1])["kept"][:2] == ["kept/profile.json", "kept/profile.html"]
    assert (tmp_path / "kept" / "profile.json").exists() and not (tmp_path / "elsewhere" / "kept").exists()
    assert "UserWarning: planted" in ran.stderr and "rlbench: planted" not in ran.stderr


def test_a_trace_that_is_not_there_loses_nothing_else(tmp_path):
    path = script(tmp_path, "x = 1\n")
    ran = run("profile", path, "--trace", tmp_path / "t.json", "--html", tmp_path / "p.html")
    assert ran.returncode == 0 and "t.json is not kept: there is no trace to save" in ran.stderr
    assert "Profile of script theirs.py" in ran.stdout and (tmp_path / "p.html").exists()


def test_a_disk_that_refuses_fails_and_the_report_is_still_printed(cli, monkeypatch):
    from rlbench.profiling.report import Report

    def full(self, path, **options):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Report, "save_html", full)
    Path("short.py").write_text("x = 1\n")
    ran = cli("profile", "short.py", "--html", "p.html")
    assert ran.code == 1 and "p.html is not kept: p.html: No space left on device" in ran.err
    assert "Profile of script short.py" in ran.out


def test_a_terminal_without_bars(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ran = run("profile", script(tmp_path, "main(300)\n"), "--no-threads")
    assert ran.returncode == 0 and "Where the time goes" in ran.stdout, ran.stderr


def test_an_env_that_fails_is_no_refusal(cli):
    fails = "from cli_envs import Corridor\nclass Failing(Corridor):\n    def step(self, action):\n"
    Path("failing.py").write_text(f"{fails}        raise ValueError('planted')\n")
    with pytest.raises(ValueError, match="planted"):
        cli("profile", "dqn", "--env", "failing:Failing", "--seconds", "1")


def test_applying_may_be_interrupted(cli, monkeypatch):
    from rlbench.profiling import apply

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(apply, "apply", interrupted)
    ran = cli("profile", "dqn", "--seconds", "1", "--learning-starts", "64", "--hidden", "8", "--apply")
    assert ran.code == 0 and "interrupted; the profile follows" in ran.err and "Where the time goes" in ran.out


STUBBORN = """
import os
try:
    while True:
        try:
            main(10)
        except Exception:
            pass
finally:
    print("tidied up")
"""


def test_a_script_is_stopped_in_time(tmp_path):
    ran = run("profile", script(tmp_path, STUBBORN), "--seconds", "3")
    assert ran.returncode == 0 and "tidied up" in ran.stdout and "What would not help here" in ran.stdout


CHILDREN = """
import gymnasium
from functools import partial
def make():
    return gymnasium.make("CartPole-v1")
if __name__ == "__main__":
    envs = gymnasium.vector.AsyncVectorEnv([make, make], context="spawn")
    envs.reset()
    net = nn.Linear(4, 2)
    for _ in range(40):
        envs.step(net(torch.zeros(2, 4)).argmax(1).numpy())
    envs.close()
"""


def test_a_script_with_processes_of_its_own(tmp_path):
    ran = run("profile", script(tmp_path, CHILDREN), "--json")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout.splitlines()[-1])
    assert document["steps"] > 0 and "env_waits" not in {advice["name"] for advice in document["advice"]}


def test_a_module(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "train.py").write_text(LOOP + "main(500)\n")
    ran = run("profile", "-m", "package.train", cwd=tmp_path)
    assert ran.returncode == 0 and "Profile of script -m package.train" in ran.stdout, ran.stderr


@pytest.mark.parametrize("trainer", ["dqn", "ppo"])
def test_a_trainer_of_ours(cli, trainer):
    own = {"dqn": ["--learning-starts", "64"], "ppo": ["--num-steps", "16", "--num-envs", "4"]}[trainer]
    ran = cli("profile", trainer, "--seconds", "2", "--batch-size", "16", "--hidden", "8", "--json", *own)
    assert ran.code == 0, ran.err
    document = json.loads(ran.out.splitlines()[-1])
    assert document["settings"]["trainer"] == trainer and document["updates"] > 0
    assert sum(p["share"] for p in document["phases"] if not p["part_of"]) == pytest.approx(1.0, abs=0.02)


def test_the_parts_of_a_fused_call(cli):
    ran = cli("profile", "dqn", "--choices", "fast", "--seconds", "3", "--json")
    assert ran.code == 0, ran.err
    parts = {p["name"] for p in json.loads(ran.out.splitlines()[-1])["phases"] if p["part_of"]}
    assert not parts or {"env", "store", "sample"} <= parts


def test_a_script_that_ends_early_says_how(tmp_path):
    ran = run("profile", script(tmp_path, "main(30)\nraise KeyboardInterrupt\n"))
    assert ran.returncode == 130 and "It ended early: it was interrupted" in ran.stdout
    ran = run("profile", script(tmp_path, "main(30)\nimport sys\nsys.exit(3)\n"))
    assert ran.returncode == 1 and "It ended early: sys.exit(3)" in ran.stdout
    ran = run("profile", script(tmp_path, "main(30)\nraise ValueError('planted')\n"))
    frames = [line for line in ran.stderr.splitlines() if line.startswith("  File ")]
    assert ran.returncode == 1 and len(frames) == 1 and "ValueError: planted" in ran.stderr
