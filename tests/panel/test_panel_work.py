"""The status line and the sentence for an error."""

import math

import pytest

from rlbench.config import ConfigError
from rlbench.panel.work import Status, sentence


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (Status("working", "run", 0, 100), "0 %"),
        (Status("working", "run", 62, 100, 5812.3, 65.0, 23.14159), "62 % · 5,812 steps/s · return 23.14 · 1:05 left"),
        (Status("working", "run", 62, 100, 5812.3, math.inf), "62 % · 5,812 steps/s"),
        (Status("stopped", "run", 62, 100, 5812.3, 65.0), "62 % · stopped"),
        (Status("done", "run", 104, 100), "100 % · done"),
        (Status("working", "run", 5, 0), "100 %"),
    ],
)
def test_status_line(status, line):
    assert status.line() == line


def test_sentence_of_an_error():
    assert sentence(ConfigError("seed must be at least 0.")) == "seed must be at least 0."
    assert sentence(ValueError("one\ntwo")) == "ValueError: one"
    assert sentence(KeyError()) == "KeyError"
