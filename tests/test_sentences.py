"""Sentences say slower as plainly as faster, and nothing where nothing was seen."""

import pandas as pd
import pytest

from rlbench import sentences as s

ROW = {"ratio": 0.4, "ratio_low": 0.38, "ratio_high": 0.42, "aa_low": 0.97, "aa_high": 1.03, "not_measured": None}


def test_slower_is_said_and_advised_against():
    row = {**ROW, "verdict": "slower"}
    assert s.compare("Async", "sync", row) == "Async is slower than sync: 0.40 [0.38, 0.42] times as fast."
    assert s.advise(row, "async") == "Do not turn on async here: it costs time."
    assert s.tone(row) == "slower"


def test_no_difference_shows_the_band():
    row = {**ROW, "ratio": 1.01, "verdict": "no difference seen"}
    assert "no difference seen, 1.01" in s.compare("A", "B", row) and "0.97 to 1.03" in s.compare("A", "B", row)
    assert s.tone(row) == "none" and "nothing is gained" in s.advise(row, "A")


def test_a_reason_that_a_frame_turned_into_nan_is_no_reason():
    frame = pd.DataFrame(
        [{**ROW, "verdict": "slower"}, {**ROW, "verdict": "not measured", "not_measured": "needs CUDA"}]
    )
    first, second = frame.to_dict("records")
    assert "is slower than" in s.compare("A", "B", first)
    assert s.compare("A", "B", second) == "A against B: not measured on this machine (needs CUDA)."


@pytest.mark.parametrize("verdict", ["too few rounds", "too few seeds", "not the same", "failed", "not measured"])
def test_what_is_not_known_is_not_called_the_same(verdict):
    none = float("nan") if verdict.startswith(("not", "failed")) else 1.0
    said = s.compare("A", "B", {**ROW, "ratio": none, "verdict": verdict}) + s.advise({"verdict": verdict}, "A")
    assert verdict in said and "nan" not in said and "no difference" not in said and "nothing is gained" not in said


def test_by_verdict_names_every_row_once():
    verdicts = ("slower", "faster", "not measured")
    rows = pd.DataFrame([{**ROW, "label": f"row{i}", "verdict": v} for i, v in enumerate(verdicts)])
    rows.loc[2, "ratio"] = float("nan")
    said = {tone: text for text, tone in s.by_verdict(rows)}
    assert "row1: 0.40" in said["faster"] and "row0: 0.40" in said["slower"] and "leave these off" in said["slower"]
    assert said["not measured"] == "Not measured on this machine: row2."


def test_learning_is_said_once_and_stamped_elsewhere():
    assert s.learning({"learns": "not shown to learn the same (quick: do not cite)"}) == "Not shown to learn the same."


def test_small_ratios_do_not_read_as_nothing():
    assert s.interval(0.0056, 0.0049, 0.0059) == "0.0056 [0.0049, 0.0059]"
    assert s.interval(0.1, 0.04, 0.2) == "0.10 [0.04, 0.20]" and s.interval(0.0, -1.0, 1.0) == "0.00 [-1.00, 1.00]"
    assert s.interval(0.04, -3.0, 3.0, digits=0) == "0 [-3, 3]"


def test_advice_is_a_sentence():
    said = [
        s.advise({"verdict": verdict}, "more threads")
        for verdict in ("faster", "slower", "no difference seen", "failed")
    ]
    assert all(text[0].isupper() and text.endswith(".") and "more threads" in text for text in said)


def test_seconds_take_a_fitting_unit():
    assert [s.seconds(x) for x in (2.0, 0.0015, 2e-6, 3e-9)] == ["2 s", "1.5 ms", "2 µs", "3 ns"]
