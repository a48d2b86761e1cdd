"""Paired rounds of whole trainings: order, control, what a stop keeps, and the row that they give."""

import math

import pytest

from rlbench.panel.comparison import Comparison, paired_rounds, rounds_of, trainings_of


def comparison(rows, returns=None) -> Comparison:
    return Comparison("fast", {}, 100, list(rows), list(returns or [(1.0, 1.0, 1.0)] * len(rows)))


def test_row_of_a_clear_case():
    row = comparison([(2.0, 1.0, 2.0)] * 5, [(10.0, 12.0, 10.0)] * 4 + [(20.0, 7.0, 20.0)]).row()
    assert row["ratio"] == pytest.approx(2.0)
    assert (row["ratio_low"], row["ratio_high"]) == (pytest.approx(2.0), pytest.approx(2.0))
    assert (row["verdict"], row["rounds"], row["note"]) == ("faster", 5, "quick: do not cite")
    assert (row["sps"], row["plain_sps"]) == (100.0, 50.0)
    assert (row["mean_return"], row["plain_return"]) == (11.0, 12.0)


def test_slower_is_as_visible_as_faster():
    row = comparison([(1.0, 4.0, 1.0)] * 20).row()
    assert row["ratio"] == pytest.approx(0.25)
    assert (row["verdict"], row["note"]) == ("slower", "")


def test_inside_the_control_band_no_difference_is_seen():
    rows = [(1.0, 0.95, again) for again in (0.8, 1.25) * 5]  # plain against itself varies more than that
    assert comparison(rows).row()["verdict"] == "no difference seen"


def test_few_or_no_rounds_give_no_verdict():
    assert comparison([(2.0, 1.0, 2.0)]).row()["verdict"] == "too few rounds"
    row = comparison([]).row()
    assert row["verdict"] == "too few rounds"
    assert math.isnan(row["ratio"]) and math.isnan(row["sps"]) and math.isnan(row["mean_return"])


def test_returns_that_are_not_known_are_left_out():
    row = comparison([(1.0, 1.0, 1.0)] * 2, [(math.nan, 3.0, 1.0), (4.0, 5.0, 1.0)]).row()
    assert (row["plain_return"], row["mean_return"]) == (4.0, 4.0)


def test_rounds_hold_each_side_once_from_one_seed_in_varying_order():
    calls, seen = [], []
    found = comparison([])

    def train_once(side, seed):
        calls.append((side, seed))
        return {"baseline": 3.0, "selected": 1.0, "baseline again": 2.0}[side], float(seed)

    assert paired_rounds(found, train_once, 12, 7, lambda one: seen.append(one.rounds))
    assert len(calls) == trainings_of(12) == 38
    assert calls[:2] == [("baseline", 7), ("selected", 7)]  # warm-up
    rounds = [calls[2 + 3 * i : 5 + 3 * i] for i in range(12)]
    for i, each in enumerate(rounds):
        assert sorted(each) == [("baseline", 7 + i), ("baseline again", 7 + i), ("selected", 7 + i)]
    assert len({tuple(side for side, _ in each) for each in rounds}) > 1
    assert found.seconds == [(3.0, 1.0, 2.0)] * 12
    assert found.returns == [(float(7 + i),) * 3 for i in range(12)]
    assert seen == list(range(1, 13))


@pytest.mark.parametrize(("after", "kept"), [(0, 0), (1, 0), (2, 0), (4, 0), (5, 1), (7, 1), (8, 2)])
def test_a_stop_keeps_complete_rounds(after, kept):
    left = iter([(1.0, 1.0)] * after)
    found = comparison([])
    assert not paired_rounds(found, lambda side, seed: next(left, None), 5, 0)
    assert found.rounds == len(found.returns) == kept


def test_number_of_rounds_in_words():
    assert [rounds_of(n) for n in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]
