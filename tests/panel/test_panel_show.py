"""Results as outputs: the same numbers as in the widgets, escaped, and nothing where there is nothing."""

import pytest

from rlbench.panel.bench import RUN_COLUMNS, Bench
from rlbench.panel.comparison import Comparison
from rlbench.panel.show import Results, comparison_table, run_table, still


@pytest.fixture
def bench():
    bench = Bench(choices="fast")
    bench.comparisons.append(Comparison("fast", {}, 100, [(2.0, 1.0, 2.0)] * 5, [(3.0, 4.0, 3.0)] * 5))
    values = ("<b>", 1500, 2345.6, 0.5, float("nan"), 0, "stopped")
    bench.runs.append(dict(zip(RUN_COLUMNS, values, strict=True)))
    return bench


def test_tables_as_text(bench):
    assert comparison_table(bench).iloc[0].tolist() == [
        "fast", "2.000", "[2.000, 2.000]", "[1.000, 1.000]", "faster", "4 (3)", "100 (50)", 5, "quick: do not cite",
    ]  # fmt: skip
    assert run_table(bench).iloc[0].tolist() == ["<b>", "1,500", "2,346", "0.50", "n/a", 0, "stopped"]


def test_contents_are_a_picture_and_escaped_tables(bench):
    ladder, comparisons, runs = Results(bench).contents()
    assert ladder.data.startswith(b"\x89PNG")
    assert "no difference" not in comparisons._repr_html_() and "faster" in comparisons._repr_html_()
    assert "&lt;b&gt;" in runs._repr_html_() and "<b>" not in runs._repr_html_()
    assert "1,500" in repr(runs) and 'text-align:left">1,500' in runs._repr_html_()
    assert "<th>" not in runs._repr_html_()  # a notebook's own style sets these to the right


def test_nothing_found_shows_nothing():
    assert [content._repr_html_() for content in Results(Bench()).contents()] == ["", "", ""]


def test_update_before_show_is_harmless(bench):
    results = Results(bench)
    results.update()
    assert results.drawn > 0


def test_still_shows_state_and_results(bench, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    still(bench)
    assert [type(content).__name__ for content in shown] == ["Image", "_Table", "_Table", "_Table"]
    assert "native" in repr(shown[1])
    shown.clear()
    still(Bench())
    assert [type(content).__name__ for content in shown] == ["Image", "_Table"]
