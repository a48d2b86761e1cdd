"""What is said and drawn of the loops."""

import pandas as pd

from rlbench import loop_findings
from rlbench.experiments.loops import PARTS


def row(variant, iteration_us, ratio, verdict="faster", **more):
    numbers = {"ratio": ratio, "ratio_low": ratio - 0.5, "ratio_high": ratio + 0.5, "aa_low": 0.9, "aa_high": 1.1}
    own = {"variant": variant, "iteration_us": iteration_us, "products_us": 50.0, "times_products": iteration_us / 50}
    return {**own, **numbers, "verdict": verdict, "not_measured": None, **more}


PARTS_ROWS = pd.DataFrame([row("python", 1000.0, 1.0, "baseline"), row(PARTS, 400.0, 2.5), row("native", 100.0, 10.0)])


def test_the_answer_is_what_lies_between_the_loops():
    assert loop_findings.answer(PARTS_ROWS, "native") == (
        "Here an iteration under loop=native is faster than one under plain: 10.00 [9.50, 10.50] times as fast. It takes "
        "1 ms under plain, with fast parts 400 µs, under loop=native 100 µs: so Python itself costs 300 µs an iteration, 75% "
        "of it once the parts are fast.",
        "faster",
    )


def test_no_answer_without_a_difference_or_a_measurement():
    near = PARTS_ROWS.assign(iteration_us=[1000.0, 100.0, 100.0])
    assert loop_findings.answer(near, "native")[0].endswith("cannot be told apart.")
    absent = pd.DataFrame(
        [*PARTS_ROWS.to_dict("records")[:2], row("native", float("nan"), float("nan"), "not measured")]
    )
    absent.loc[2, "not_measured"] = "no compiler"
    text, tone = loop_findings.answer(absent, "native")
    assert (
        "not measured on this machine (no compiler). What Python itself costs cannot" in text and tone == "not measured"
    )


def test_ends_of_a_sweep():
    rows = pd.DataFrame(
        [row("native", 1.0, float(size), over=axis, size=size) for axis in ("batch", "width") for size in (8, 2, 4)]
        + [row(PARTS, 1.0, 9.0, over="batch", size=1)]
    )
    said = [text for text, _ in loop_findings.widest(rows, "native")]
    assert [text[:12] for text in said] == ["With batch 2", "With batch 8", "With width 2", "With width 8"]
    assert "under loop=native is faster than one under plain: 2.00" in said[0]


def test_bounds_are_one_sentence():
    ((text, tone),) = loop_findings.bounds(pd.DataFrame([row("x", 1, 56.6, size=1), row("x", 1, 1.2, size=1000)]))
    assert text.endswith(
        "fast that any loop could make an iteration: 56.6 where a step costs 1 µs, 1.2 where a step costs 1 ms."
    )
    assert tone == "note"


def test_trainings_are_told_with_their_returns():
    shared = {"env": "ou", "learns": "learns the same (quick: do not cite)", "to_return": 0.25}
    whole = pd.DataFrame(
        [
            row("x", 1, 1.0, "baseline", label="plain", to_return_ratio=1.0, **shared),
            row("x", 1, 1.0, label="plain again", to_return_ratio=1.0, **shared),
            row("x", 1, 8.0, label="fast", to_return_ratio=7.0, **shared),
            row("x", 1, 2.0, label="fast, loop=python", to_return_ratio=float("nan"), **shared),
        ]
    )
    equal = pd.DataFrame([{"env": "ou", "label": name, "equal": 3, "seeds": 5} for name in whole["label"]])
    (fast, tone), (other, _) = loop_findings.learnt(whole, equal)
    assert fast == (
        "Training on ou under fast is faster than training under plain: 8.00 [7.50, 8.50] times as fast. Learns the same. "
        "Seed by seed, 3 of 5 final returns are exactly plain's. It reaches a return of 0.25 7.0 times as soon."
    )
    assert tone == "faster" and "reaches" not in other


def test_pictures_have_every_name():
    points = pd.DataFrame(
        [
            {"name": name, "seed": seed, "env_step": step, "seconds": step * speed, "value": step + seed}
            for name, speed in (("plain", 0.1), ("fast", 0.01))
            for seed in (1, 2, 3)
            for step in (10, 20)
        ]
    )
    figure = loop_findings.over_seconds(points, "return", "title")
    (axis,) = figure.axes
    assert axis.get_legend_handles_labels()[1] == ["plain", "fast"]
    thick = next(line for line in axis.lines if line.get_label() == "plain")
    assert list(thick.get_xdata()) == [1.0, 2.0] and list(thick.get_ydata()) == [12.0, 22.0]
    assert axis.get_xscale() == "log"
    bars = loop_findings.beside_products(PARTS_ROWS, "title")
    assert [text.get_text() for text in bars.axes[0].texts][-1] == "100 µs, 2.0 × its products"
    assert [label.get_text() for label in bars.axes[0].get_yticklabels()] == ["python", PARTS, "native"]
