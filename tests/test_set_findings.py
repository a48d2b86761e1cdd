"""What is said of sets of actions, from planted rows."""

import pandas as pd
import pytest

from rlbench import set_findings as said
from rlbench.experiments.action_sets import LOW


def row(variant, ratio, verdict="faster", **more):
    numbers = {"ratio": ratio, "ratio_low": ratio - 0.5, "ratio_high": ratio + 0.5, "aa_low": 0.9, "aa_high": 1.1}
    return {"variant": variant, "baseline": "loop", **numbers, "verdict": verdict, "not_measured": None, **more}


NOT_MEASURED = {"ratio_low": float("nan"), "ratio_high": float("nan"), "not_measured": "no compiler"}


@pytest.mark.parametrize(
    ("ratio", "verdict", "words"),
    [
        (2.4, "faster", "as claimed"),  # 1.9 to 2.9
        (1.7, "faster", "as claimed"),  # 1.2 to 2.2 meets 2 to 3
        (3.4, "faster", "as claimed"),
        (3.6, "faster", "more than that"),
        (1.4, "faster", "less than that"),
        (0.6, "slower", "slower"),
        (1.0, "no difference seen", "no difference seen"),
        (2.5, "too few rounds", "too few rounds"),
    ],
)
def test_a_ratio_beside_a_claim(ratio, verdict, words):
    assert said.judged(row("grouped", ratio, verdict), 2, 3) == words


def test_a_claim_is_one_sentence():
    rows = pd.DataFrame([row("grouped", 0.7, "slower"), row("grouped", 6.0)])
    text, tone = said.claim("B3", rows, ["1 state", "256 states"])
    assert text == (
        "Claim B3. Grouping states by their count was to be 2 to 3 times as fast. Measured: 1 state: 0.70 [0.20, 1.20], "
        "slower; 256 states: 6.00 [5.50, 6.50], more than that."
    )
    assert tone == "none"
    assert said.claim("B2", rows[1:], ["x"])[1] == "faster" and said.claim("B2", rows[:1], ["x"])[1] == "slower"
    assert said.claim("B4", rows[:0], [])[0].endswith("Measured: nothing.")


def test_a_claim_that_cannot_be_measured():
    rows = pd.DataFrame([row("shift", float("nan"), "not measured", **NOT_MEASURED)])
    text, tone = said.claim("B1", rows, ["16 ids"])
    assert text.endswith("Measured: 16 ids: no ratio, not measured.") and tone == "not measured"


def test_spreads():
    facts = {"spread": "all 10", "size": 32, "groups": 1, "filled_up": 0.0}
    mixed = {"spread": "1 to 20", "size": 32, "groups": 17, "filled_up": 0.48}
    rows = [row("loop", 1.0, "baseline", **facts), row("packed", 8.0, **facts), row("padded", 9.0, **facts)]
    rows += [row("loop", 1.0, "baseline", **mixed), row("packed", 8.0, **mixed), row("padded", 0.7, "slower", **mixed)]
    rows.append({**row("native", float("nan"), "not measured", **mixed), **NOT_MEASURED})
    first, second = said.over_spreads(pd.DataFrame(rows))
    assert first == (
        "Counts all 10, in 32 states (1 count that occurs, 0% of a padded matrix filled up), times as fast as loop: padded "
        "9.00 [8.50, 9.50], packed 8.00 [7.50, 8.50].",
        "faster",
    )
    assert "17 different counts" in second[0] and second[0].endswith("padded 0.70 [0.20, 1.20] (slower).")
    assert second[1] == "none"
    table = said.spread_table(pd.DataFrame(rows))
    assert list(table.index) == ["packed", "padded", "native"] and list(table.columns) == ["all 10", "1 to 20"]
    assert table.loc["native", "1 to 20"] == "not measured" and table.loc["padded", "1 to 20"] == "0.70 [0.20, 1.20]"


def test_sizes_within():
    rows = [row("loop", 1.0, "baseline", within="the bits alone", size=16)]
    rows += [
        row("fused", 2.0, within="the bits alone", size=16),
        row("fused", 0.7, "slower", within="a layer", size=2048),
    ]
    first, second = said.over_sizes(pd.DataFrame(rows))
    assert first == ("The bits alone, times as fast as loop: fused 2.00 [1.50, 2.50] at 16 ids.", "faster")
    assert second == ("A layer, times as fast as loop: fused 0.70 [0.20, 1.20] at 2,048 ids (slower).", "slower")


def test_ratios_are_told_by_precision():
    rows = [{"precision": "float32", "error": 1.2e-7, "alone": True}, {"precision": LOW, "error": 0.012, "alone": True}]
    told = [text for text, _ in said.ratios(pd.DataFrame([*rows, {**rows[0], "error": 3e-7}]))]
    assert "in float32, over 2 pairs" in told[0] and "is 3e-07; states with one action have" in told[0]
    assert "is 0.01;" in told[1] and told[2].startswith("So under bfloat16") and len(told) == 3
    (text, _), *_ = said.ratios(pd.DataFrame([{**rows[0], "alone": False}]))
    assert "a log-probability of NOT exactly zero" in text


def test_sorting_and_counts():
    rows = pd.DataFrame(
        [
            {**row("index_views", 1.0, "baseline"), "evaluator": "padded"},
            {**row("by_count", 1.5), "evaluator": "padded"},
        ]
    )
    ((text, tone),) = said.sorting(rows)
    assert text.startswith("An epoch with evaluate=padded, minibatches sorted by count, is faster than one with")
    assert tone == "faster"
    assert [said.counted(n, "state") for n in (1, 2, 1024)] == ["1 state", "2 states", "1,024 states"]
