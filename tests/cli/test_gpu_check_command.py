"""`rlbench gpu-check`: on a bare machine it runs to the end; rows go to the file as they come; a failed check is exit code 1."""

import json
import subprocess
import sys

import pytest

import rlbench.gpu_check as checking
from rlbench.gpu_check.run import SECTIONS

BARE = """
import sys
from importlib.machinery import PathFinder

class Bare:  # what is blocked is not found, as if it were not installed
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.split(".")[0] in {blocked} else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Bare if finder is PathFinder else finder for finder in sys.meta_path]
from rlbench.cli.app import main
sys.exit(main(sys.argv[1:]))
"""
BLOCKED = ["gymnasium", "IPython", "jupyterlab", "ipywidgets", "papermill", "nbformat", "tqdm", "pyarrow", "matplotlib"]


def test_it_runs_on_a_bare_machine(tmp_path):
    words = ["gpu-check", "--quick", "--device", "cpu", "--price", "0.50", "--json", "--out", "rows.jsonl", "--record"]
    command = [sys.executable, "-c", BARE.format(blocked=set(BLOCKED)), *words]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=280)
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout.splitlines()[-1])
    rows = document["rows"]
    assert document["passed"] is True
    assert {row["section"] for row in rows} == {section.name for section in SECTIONS}
    assert [row["error"] for row in rows if row["error"]] == []
    assert all(row["cpu_sps"] > 0 for row in rows if row["section"] == "loop")
    assert any(row["not_measured"] and row["not_measured"].endswith("not measured on this machine") for row in rows)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == len(rows)
    assert len(list(tmp_path.glob("reports/measurements/*/*-gpu-check.json"))) == 1
    assert all(section.question in ran.stderr for section in SECTIONS)


@pytest.fixture
def fake(monkeypatch):
    """`gpu_check` that hands out given rows and keeps what it was called with."""
    calls = {}

    def set_rows(rows):
        def gpu_check(*, on_row, **arguments):
            calls.update(arguments)
            for row in rows:
                on_row(row)
            return rows

        monkeypatch.setattr(checking, "gpu_check", gpu_check)
        return calls

    return set_rows


def row(**changes):
    empty = {"kind": "gpu-check", "machine": "m", "name": "n", "section": "same", "not_measured": None, "error": None}
    return {**empty, "same": None, "verdict": None, **changes}


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (row(same=True, verdict="same"), 0),
        (row(verdict="not measured", not_measured="why"), 0),
        (row(same=False, verdict="NOT the same", error="x"), 1),
        (row(section="loop", verdict="failed", error="x"), 1),
    ],
)
def test_exit_codes(cli, fake, found, code):
    calls = fake([found])
    ran = cli("gpu-check", "--price", "0.5", "--cpu-price", "0.1", "--minutes", "1.5", "--device", "cpu")
    assert ran.code == code
    assert (calls["price"], calls["cpu_price"], calls["minutes"], calls["quick"]) == (0.5, 0.1, 1.5, False)


def test_a_failed_check_is_in_the_document(cli, fake):
    fake([row(same=False, verdict="NOT the same", error="x")])
    assert cli("gpu-check", "--json").document["passed"] is False


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--price", "0"], "above 0"),
        (["--minutes", "-1"], "above 0"),
        (["--cpu-price", "1"], "--price"),
        (["--prise", "1"], "did you mean --price"),
        (["--device", "gpu"], "cuda"),
        (["--out", "."], "folder"),
    ],
)
def test_refusals(cli, words, says):
    ran = cli("gpu-check", *words)
    assert ran.code == 2 and says in ran.err and len(ran.err.splitlines()) == 1
