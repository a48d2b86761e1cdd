"""Plots take tidy frames, return Figures, and say what they show without colour alone."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from rlbench import plots

NAN = float("nan")


def ratio_row(label, ratio, low, high, verdict):
    return {"label": label, "ratio": ratio, "ratio_low": low, "ratio_high": high, "aa_low": 0.97, "aa_high": 1.03} | {
        "verdict": verdict
    }


def words(figure):
    """All text of a figure's axes."""
    found = []
    for axis in figure.axes:
        found += [text.get_text() for text in axis.texts] + [axis.get_title(loc="left"), axis.get_xlabel()]
        found += [label.get_text() for label in axis.get_yticklabels()]
    return "\n".join(found)


def drawn(figure):
    assert isinstance(figure, Figure)
    figure.canvas.draw()
    return figure


def test_ladder_marks_one_and_names_what_is_slower_and_not_measured():
    rows = pd.DataFrame(
        [
            ratio_row("replay deque", 0.4, 0.38, 0.42, "slower"),
            ratio_row("optimizer fused", 2.0, 1.9, 2.1, "faster"),
            {**ratio_row("transfer pinned", NAN, NAN, NAN, "not measured"), "aa_low": NAN, "aa_high": NAN},
            {**ratio_row("transfer pinned", NAN, NAN, NAN, "failed"), "aa_low": NAN, "aa_high": NAN},
        ]
    )
    figure = drawn(plots.ladder(rows, "title"))
    axis = figure.axes[0]
    assert axis.get_xscale() == "log"
    assert any(list(line.get_xdata()) == [1, 1] for line in axis.lines)
    low, high = axis.get_xlim()
    assert low < 0.38 and high > 2.1
    text = words(figure)
    assert all(part in text for part in ("0.40×", "slower", "faster", "not measured on this machine", "failed"))


def test_ladder_of_one_row_near_one_has_ticks():
    figure = drawn(plots.ladder(pd.DataFrame([ratio_row("x", 1.01, 0.99, 1.02, "no difference seen")])))
    assert "1" in [label.get_text() for label in figure.axes[0].get_xticklabels()]


def test_ladder_over_four_orders_has_few_ticks_and_names_small_ratios():
    rows = [ratio_row("x", 0.0056, 0.0049, 0.0059, "slower"), ratio_row("y", 40.0, 39.0, 41.0, "faster")]
    figure = drawn(plots.ladder(pd.DataFrame(rows)))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["0.01", "0.1", "1", "10"]
    assert "0.0056× [0.0049, 0.0059]" in words(figure)


def test_sweep_draws_the_band_and_each_variant():
    rows = pd.DataFrame(
        [
            {"variant": v, "size": s, **ratio_row("", r, r * 0.9, r * 1.1, "faster")}
            for v, r in (("a", 2.0), ("b", 0.5))
            for s in (1, 32)
        ]
    )
    figure = drawn(plots.sweep(rows, "rows"))
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert {"a", "b"} < set(labels) and any("A/A band" in label for label in labels)


@pytest.mark.parametrize("measured", [True, False])
def test_crossover_says_which_device_or_that_the_gpu_was_not_measured(measured):
    rows = pd.DataFrame(
        [
            {"batch_size": b, "hidden": h, "cpu_us": 100.0 * b, "gpu_ratio": r if measured else NAN, "gpu_verdict": v}
            for (b, r, v) in ((32, 0.5, "slower"), (2048, 4.0, "faster"))
            for h in (64, 256)
        ]
    )
    text = words(drawn(plots.crossover(rows, "CPU or GPU?", (32, 64))))
    assert ("GPU\n4×" in text and "CPU\n0.5×" in text) if measured else "not measured on this machine" in text


def test_crossover_of_one_cell():
    row = {"batch_size": 1, "hidden": 1, "cpu_us": 1500.0, "gpu_ratio": NAN, "gpu_verdict": "not measured"}
    assert "1.5 ms" in words(drawn(plots.crossover(pd.DataFrame([row]))))


def test_phase_shares_stack_to_the_total():
    rows = pd.DataFrame(
        [{"name": n, "phase": p, "seconds": s} for n in ("plain", "fast") for p, s in (("env", 1.0), ("other", 3.0))]
    )
    figure = drawn(plots.phase_shares(rows))
    ends = [patch.get_x() + patch.get_width() for patch in figure.axes[0].patches]
    assert max(ends) == pytest.approx(4.0)
    assert "25%" in words(figure) and "75%" in words(figure)


def test_learning_curves_draw_the_interquartile_mean():
    values = {1: 0.0, 2: 1.0, 3: 2.0, 4: 100.0}  # the middle half: 1 and 2
    rows = pd.DataFrame([{"name": "DQN", "seed": s, "env_step": 10, "value": v} for s, v in values.items()])
    axis = drawn(plots.learning_curves(rows, "return", levels={"random": 0.0})).axes[0]
    (centre,) = [line for line in axis.lines if line.get_linewidth() == 2]
    assert list(centre.get_ydata()) == [1.5]
    assert "random" in axis.get_legend_handles_labels()[1]


def test_learning_curve_of_one_seed_has_no_band():
    rows = pd.DataFrame([{"name": "DQN", "seed": 1, "env_step": t, "value": 1.0} for t in (1, 2)])
    assert not drawn(plots.learning_curves(rows, "return")).axes[0].collections


def test_drawdown_is_the_fall_from_the_last_high():
    time = pd.date_range("2020-01-01", periods=4, tz="UTC")
    rows = pd.DataFrame({"name": "agent", "time": time, "equity": [1.0, 2.0, 1.0, 4.0]})
    below = drawn(plots.equity(rows, highlight=["agent"])).axes[1]
    heights = np.concatenate([path.vertices[:, 1] for path in below.collections[0].get_paths()])
    assert heights.min() == pytest.approx(-0.5)


def test_return_against_speed_has_a_mark_a_run():
    rows = pd.DataFrame([{"name": n, "speed": 100.0 * i, "value": 1.0} for n in "ab" for i in (1, 2, 3)])
    axis = drawn(plots.return_against_speed(rows, "sps", "return")).axes[0]
    assert [len(marks.get_offsets()) for marks in axis.collections] == [3, 3]
