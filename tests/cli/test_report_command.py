"""`rlbench report` hands on what it was told; values stay the text they are."""

import sys
import types
from pathlib import Path

import pytest

import rlbench


@pytest.fixture
def calls(monkeypatch):
    seen = []
    module = types.ModuleType("rlbench.report")
    module.run = lambda *args, **kwargs: seen.append((args, kwargs)) or 1
    monkeypatch.setitem(sys.modules, "rlbench.report", module)
    monkeypatch.setattr(rlbench, "report", module, raising=False)
    return seen


def test_defaults(cli, calls):
    assert cli("report").code == 1  # what the report says
    assert calls == [((None, None, None), {"quick": True, "progress": None})]


def test_numbers_parameters_and_folder(cli, calls):
    cli("report", "01", "03", "-p", "total_steps", "0010", "-p", "amp", "false", "--full", "--out", "here", "--quiet")
    parameters = {"total_steps": "0010", "amp": "false"}
    assert calls == [((["01", "03"], parameters, Path("here")), {"quick": False, "progress": False})]


def test_parameters_from_a_file(cli, calls):
    cli("report", "--parameters", "mine.yaml")
    assert calls[0][0][1] == "mine.yaml"


@pytest.mark.parametrize(
    "words",
    [["--parameters", "f.yaml", "-p", "a", "1"], ["-p", "only_a_name"], ["-p", "a", "1", "-p", "a", "2"], ["--fully"]],
)
def test_refusals(cli, calls, words):
    ran = cli("report", *words)
    assert ran.code == 2 and len(ran.err.splitlines()) == 1 and calls == []
