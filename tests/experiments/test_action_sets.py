"""Evaluators over the spread of counts: layouts by hand, rows complete, ratios of 1, faults noticed."""

import pytest
import torch

from rlbench.experiments import action_sets as sets

QUICK = {"device": "cpu", "quick": True, "rounds": 1, "progress": False}


def test_layouts_by_hand():
    (row, lone) = sets.layouts({"six": [3, 1, 9, 3, 5, 2], "one": [4]})
    assert row == {
        "counts": "six",
        "states": 6,
        "actions": 23,
        "padded to": 54,
        "filled up": "57%",  # 31 of 54
        "calls grouped": 5,
        "packed": 1,
    }
    assert lone["padded to"] == lone["actions"] == 4 and lone["filled up"] == "0%" and lone["calls grouped"] == 1


def test_counts_of_every_spread():
    found = {name: sets.counts_of(name, 40, seed=3).tolist() for name in sets.SPREADS}
    assert all(len(counts) == 40 and min(counts) >= 1 for counts in found.values())
    assert set(found[sets.EQUAL]) == {10} and set(found["1 or 19"]) == {1, 19}
    assert sorted(found["1 to 20, one of 1,400"])[-2:][0] <= 20 and max(found["1 to 20, one of 1,400"]) == 1400
    assert found == {name: sets.counts_of(name, 40, seed=3).tolist() for name in sets.SPREADS}
    assert max(found["Othello, 20 plies in"]) <= 33  # as many as any position of the game has


def test_the_baseline_is_the_one_asked_for_and_some_are_left_out():
    rows = sets.against("padded", "evaluate", [3], ["loop", "packed_compiled"], **QUICK)
    names = [row["variant"] for row in rows]
    assert names[0] == "padded" and not {"loop", "packed_compiled"} & set(names) and "packed" in names
    assert {row["baseline"] for row in rows} == {"padded"} and all(row["same"] in (True, None) for row in rows)


def test_rows_over_spreads():
    rows = sets.over_spreads(6, ["packed_compiled", "padded"], **QUICK)
    assert list(dict.fromkeys(row["spread"] for row in rows)) == list(sets.SPREADS)
    assert {row["baseline"] for row in rows} == {"loop"} and {row["size"] for row in rows} == {6}
    assert all(row["same"] in (True, None) for row in rows), [row["error"] for row in rows]
    by_spread = {row["spread"]: row for row in rows}
    assert by_spread[sets.EQUAL]["groups"] == 1 and by_spread[sets.EQUAL]["filled_up"] == 0
    assert by_spread["1 to 20, one of 1,400"]["filled_up"] > 0.8


def test_a_kink_is_not_a_fault_and_a_fault_is():
    outcomes = [torch.ones(3), torch.ones(3), torch.ones(3)]
    gradient = torch.full((100, 64), 0.1)  # of length 8
    kink = gradient.clone()
    kink[7] += 1e-5  # a row off by 8e-5 in length, a hundred-thousandth of the whole
    sets.check([*outcomes, gradient], [*outcomes, kink])
    wrong = gradient.clone()
    wrong[7] += 1e-3
    with pytest.raises(AssertionError, match="gradient differs"):
        sets.check([*outcomes, gradient], [*outcomes, wrong])
    with pytest.raises(AssertionError):
        sets.check([*outcomes, gradient], [torch.ones(3) + 1e-3, *outcomes[1:], gradient])
    with pytest.raises(AssertionError, match="shapes"):
        sets.check([*outcomes, gradient], [*outcomes, gradient[:1]])


def test_ratios_are_one_before_an_update_whoever_is_asked():
    rows = sets.first_ratios(leave_out=["packed_compiled"], seed=5)
    full = [row for row in rows if row["precision"] == "float32"]
    names = {row["acted"] for row in full}
    assert {"loop", "grouped", "padded", "packed"} <= names and len(full) == len(names) ** 2
    assert max(row["error"] for row in full) < 1e-5
    assert {row["precision"] for row in rows} == set(sets.PRECISIONS)
    assert max(row["error"] for row in rows) < 2e-2 and all(row["alone"] for row in rows)
    assert not any("packed_native" in (row["acted"], row["evaluated"]) for row in rows if row not in full)


def test_sorting_changes_no_answer():
    rows = sets.sorting(300, ("grouped", "packed"), **QUICK)
    assert [(row["evaluator"], row["variant"]) for row in rows] == [
        ("grouped", "index_views"),
        ("grouped", "by_count"),
        ("packed", "index_views"),
        ("packed", "by_count"),
    ]
    assert all(row["same"] for row in rows) and {row["baseline"] for row in rows} == {"index_views"}
