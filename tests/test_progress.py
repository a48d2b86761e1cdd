"""Progress says what is done, how fast, and how long the rest takes."""

import io

import pytest

from rlbench.progress import Progress, duration


@pytest.mark.parametrize(
    ("rate", "says"),
    [(0.1, "0.1/s, 1:20 left"), (4.0, "4/s, 0:02 left"), (199.6, "200/s, 0:00 left"), (1234.5, "1,234/s, 0:00 left")],
)
def test_slow_rates_are_not_rounded_to_nothing(monkeypatch, rate, says):
    monkeypatch.setattr(Progress, "rate", rate)
    bar = Progress(10, "study", "trainings", stream=io.StringIO())
    bar.done = 2
    assert bar.line() == f"study: 2 of 10 trainings (20 %), {says}"


def test_durations():
    assert [duration(x) for x in (0.4, 65, 7384)] == ["0:00", "1:05", "2:03:04"]
