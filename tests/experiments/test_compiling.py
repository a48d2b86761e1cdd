"""What compiling costs and what makes it happen again: rows are complete, and what was changed is put back."""

import math

import pandas as pd
import pytest
import torch

from rlbench import compile as compiling
from rlbench import plot_break_even
from rlbench.compile import why_not
from rlbench.experiments import compile_once
from rlbench.experiments.compiling import break_even, compile_seconds, recompilations
from rlbench.speedups.update import UPDATES
from rlbench.updates.compiled import forget_compiled


def timed(**microseconds):
    """Rows as `measure` gives them: an update's microseconds times the updates of a call."""
    return pd.DataFrame([{"variant": name, "median_us": us * UPDATES} for name, us in microseconds.items()])


def costs(*rows):
    return pd.DataFrame([dict(zip(("variant", "cache", "compile_s"), row, strict=True)) for row in rows])


def test_break_even_by_hand():
    """1,000 µs against 200: 0.8 ms saved, so that 16 s pay back after 20,000 updates and 1.5 s after 1,875."""
    given = costs(
        ("compiled", "empty", 16.0), ("compiled", "filled", 1.5), ("slow", "empty", 2.0), ("other", "empty", math.nan)
    )
    found = break_even(timed(eager=1000.0, compiled=200.0, slow=1100.0), given)
    assert found["updates"].tolist() == [20_000, 1_875, math.inf]
    assert found["saved_us"].tolist() == pytest.approx([800.0, 800.0, -100.0])
    assert found["variant"].tolist() == ["compiled", "compiled", "slow"]
    assert break_even(timed(eager=1.0), costs(("compiled", "empty", 1.0))).empty  # it was not timed


def test_break_even_is_drawn_with_a_mark_where_it_lies():
    given = costs(("compiled", "empty", 16.0), ("slow", "empty", 2.0))
    figure = plot_break_even.break_even(break_even(timed(eager=1000.0, compiled=200.0, slow=1100.0), given), "t")
    axis = figure.axes[0]
    assert [text.get_text() for text in axis.texts] == ["20,000"]
    assert [line.get_label() for line in axis.lines if not line.get_label().startswith("_")] == [
        "eager",
        "compiled, cache empty",
        "slow, cache empty",
    ]


@pytest.mark.slow
def test_values_compile_nothing_anew_and_shapes_do():
    threads, backend = torch.get_num_threads(), compiling.BACKEND
    rows = {row["change"]: row for row in recompilations()}
    assert (torch.get_num_threads(), compiling.BACKEND) == (threads, backend)
    for change in ("the learning rate, a tensor", "the weights"):
        assert rows[change]["recompiles"] == 0
    for change in ("the learning rate, a Python number", "the batch size", "the number of torch threads"):
        assert rows[change]["recompiles"] == rows[change]["changes"]
    assert rows["a mask of legal actions, with and without"]["recompiles"] == 1  # both forms are kept


def test_the_child_counts_its_own_seconds(monkeypatch):
    monkeypatch.setattr(compiling, "BACKEND", "eager")
    found = compile_once.seconds_to_compile("compiled", 2, "cpu", torch.get_num_threads())
    forget_compiled()
    assert found["compile_s"] > 0


def test_what_cannot_be_compiled_has_rows_that_say_why():
    rows = compile_seconds(["cuda_graph"], device="cpu", progress=False)
    assert [row["cache"] for row in rows] == ["empty", "filled"]
    assert all("needs CUDA" in row["not_measured"] and math.isnan(row["compile_s"]) for row in rows)


@pytest.mark.slow
@pytest.mark.skipif(why_not("cpu") is not None, reason=str(why_not("cpu")))
def test_a_filled_cache_spares_most_of_it():
    empty, filled = compile_seconds(["compiled"], batch_size=4, device="cpu", progress=False)
    assert empty["compile_s"] > filled["compile_s"] > 0
