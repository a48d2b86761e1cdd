"""What notebooks call: parameters with their source, tables and findings that are escaped, figures for the index."""

import base64

import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

from rlbench import notebook as nb
from rlbench.reporting.findings import FIGURE, MIME

CELL = "quick: bool = True  # short\nsteps: int = 3  # env steps"


@pytest.fixture
def shown(monkeypatch):
    """What was displayed: (data, metadata) each."""
    calls = []
    monkeypatch.setattr(nb, "display", lambda data, raw=False, metadata=None: calls.append((data, metadata)))
    return calls


def test_parameters_come_with_their_source():
    rows = nb.parameters_in_effect(["print()", CELL, "# Parameters\nsteps = 7\n"])
    assert [(row["parameter"], row["value"], row["source"]) for row in rows] == [
        ("quick", "True", "default"),
        ("steps", "7", "injected"),
    ]
    assert nb.parameters_in_effect([CELL])[1]["source"] == "default"
    assert nb.parameters_in_effect(["x = 1"]) == []


def test_start_stamps_a_quick_run_and_its_findings(shown):
    nb.start(True)
    nb.finding("seen", "slower")
    assert "quick: do not cite" in shown[0][0].data
    assert shown[-1][0][MIME]["quick"] is True and "do not cite" in shown[-1][0]["text/plain"]
    nb.start(False)
    nb.verdict("seen", lead=True)
    assert shown[-1][0][MIME] == {"text": "seen", "kind": "verdict", "tone": "note", "quick": False, "lead": True}
    assert "do not cite" not in shown[-1][0]["text/html"]


def test_tables_escape_and_shorten(shown):
    row = {"name": "<b>", "value": 1234567.0, "small": 0.00012345, "none": None, "count": 12000, "large": 3.0508e41}
    nb.table([row])
    text = shown[0][0]["text/html"]
    for part in ("&lt;b&gt;", "1,234,567", "0.000123", "–", "12,000", "3.05e+41"):
        assert part in text


def test_a_figure_for_the_index_is_marked(shown):
    nb.figure(Figure(), "caption", index=True)
    nb.figure(Figure(), "caption")
    data, metadata = shown[0]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG") and metadata[FIGURE] == "caption"
    assert FIGURE not in shown[1][1]


def test_sources_and_their_difference(shown):
    nb.source(nb.keep)
    nb.source_diff(nb.finding, nb.verdict)
    assert shown[0][0]["text/plain"].startswith("def keep(")
    assert "-def finding(" in shown[1][0]["text/plain"] and "+def verdict(" in shown[1][0]["text/plain"]


def test_rows_are_kept_beside_a_report_only(tmp_path, monkeypatch):
    monkeypatch.delenv(nb.ROWS_VARIABLE, raising=False)
    assert isinstance(nb.keep([{"kind": "x"}]), pd.DataFrame)
    monkeypatch.setenv(nb.ROWS_VARIABLE, str(tmp_path / "rows.jsonl"))
    nb.keep([{"kind": "x"}, {"kind": "y"}])
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2


def test_what_is_said_on_standard_error_is_shown(shown):
    import sys

    assert nb.stderr_of(lambda: print("one line", file=sys.stderr)) == "one line"
    assert shown[0][0]["text/plain"] == "one line"


def test_threads_are_set_or_left_and_a_negative_number_is_refused(shown):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        nb.start(True)
        assert torch.get_num_threads() == 2
        nb.start(True, 1)
        assert torch.get_num_threads() == 1 and any("1 thread(s)" in getattr(data, "data", "") for data, _ in shown)
        with pytest.raises(ValueError, match="threads=-1"):
            nb.start(True, -1)
    finally:
        torch.set_num_threads(before)


def test_outcomes_are_values_and_errors(shown):
    nb.outcomes({"1 + 1": lambda: 1 + 1, "int('<')": lambda: int("<")})
    text = shown[0][0]["text/html"]
    assert ">2<" in text and "ValueError: invalid literal" in text and "&lt;" in text
