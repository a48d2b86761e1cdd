"""Summaries of made-up rows whose answers are worked out by hand."""

import math

import pytest

from rlbench.study.summary import summarise


def row(label, role, seed, sps, *, value=100.0, compile_s=0.0, evaluations=(), sha=None, rung=0, why=None):
    return {
        "kind": "training",
        "study": "one",
        "mode": "alone",
        "machine": "m",
        "device": "cpu",
        "env": "E",
        "label": label,
        "role": role,
        "rung": rung,
        "seed": seed,
        "sps": sps,
        "train_s": 1.0,
        "total_s": 1.0,
        "compile_s": compile_s,
        "mean_return": value,
        "random_return": 20.0,
        "evaluations": list(evaluations),
        "weights_sha256": sha or f"{label}{seed}",
        "not_measured": why,
        "config": {"batch_size": 8},
    }


def rows(count, variant_returns, *, plain_returns=None, variant_sps=2.0, compile_s=0.0):
    """Baseline and control at 100 steps a second and a little; the variant so many times faster."""
    plain_returns = plain_returns or [100.0] * count
    made = []
    for seed in range(count):
        sps = 100.0 + seed
        made.append(row("plain", "baseline", seed, sps, value=plain_returns[seed]))
        made.append(row("plain again", "again", seed, sps, value=plain_returns[seed]))
        made.append(
            row("other", "variant", seed, sps * variant_sps, value=variant_returns[seed], compile_s=compile_s, rung=1)
        )
    return made


def of(summary, label):
    return summary[summary["label"] == label].iloc[0]


def test_ratio_is_taken_within_a_seed():
    other = of(summarise(rows(6, [100.0] * 6)), "other")
    assert other["sps_ratio"] == pytest.approx(2.0)
    assert (other["sps_ratio_low"], other["sps_ratio_high"]) == pytest.approx((2.0, 2.0))
    assert (other["aa_low"], other["aa_high"]) == pytest.approx((1.0, 1.0))
    assert other["speed"] == "faster"
    assert other["sps"] == pytest.approx(205.0)  # the median of 200, 202, …, 210


def test_slower_is_as_plain_as_faster_and_few_seeds_are_not_judged():
    assert of(summarise(rows(6, [100.0] * 6, variant_sps=0.5)), "other")["speed"] == "slower"
    assert of(summarise(rows(2, [100.0] * 2)), "other")["speed"] == "too few seeds"


def test_projected_totals_count_compilation():
    made = [
        row("plain", "baseline", 1, 100.0),
        row("plain again", "again", 1, 100.0),
        row("other", "variant", 1, 200.0, compile_s=500.0, rung=1),
    ]
    other = of(summarise(made), "other")
    # 100k steps: 1000 s against 500 + 500; a million: 10000 s against 500 + 5000.
    assert other["projected_total_ratio_100k"] == pytest.approx(1.0)
    assert other["projected_total_ratio_1m"] == pytest.approx(10000 / 5500)


def test_learning_is_judged_against_plain_minus_random():
    plain = [98.0, 99.0, 100.0, 101.0, 102.0] * 2
    # The margin is 5 % of (100 - 20) = 4.
    same = of(summarise(rows(10, [v - 0.5 for v in plain], plain_returns=plain)), "other")
    assert same["learns"] == "learns the same" and same["stamp"] == ""
    assert same["return_difference"] == pytest.approx(-0.5)
    assert same["return_iqm"] == pytest.approx(99.5)
    assert same["return_low"] < 99.5 < same["return_high"]
    less = of(summarise(rows(10, [v - 20 for v in plain], plain_returns=plain)), "other")
    assert less["learns"] == "learns less"


def test_few_seeds_are_stamped():
    summary = summarise(rows(3, [100.0] * 3))
    assert set(summary["stamp"]) == {"quick: do not cite"}
    assert of(summary, "other")["learns"].endswith("(quick: do not cite)")


def test_equal_weights_on_every_seed_are_the_same_learning_however_noisy_the_returns():
    returns = [float(20 + 40 * seed) for seed in range(10)]
    made = rows(10, returns, plain_returns=returns)
    for each in made:
        each["weights_sha256"] = str(each["seed"])
    assert of(summarise(made), "other")["learns"] == "learns the same: equal weights, bit for bit"
    made[-1]["weights_sha256"] = "different"
    assert of(summarise(made), "other")["learns"] == "not shown to learn the same"


def test_wall_clock_to_a_return():
    slow = [[10, 1.0, 30.0], [20, 2.0, 95.0], [30, 3.0, 100.0]]
    fast = [[10, 0.5, 30.0], [20, 1.0, 95.0], [30, 1.5, 100.0]]
    never = [[10, 0.5, 30.0], [20, 1.0, 40.0], [30, 1.5, 50.0]]
    made = []
    for seed in (1, 2):
        made += [
            row("plain", "baseline", seed, 10.0, evaluations=slow),
            row("plain again", "again", seed, 10.0, evaluations=slow),
            row("quick", "variant", seed, 20.0, evaluations=fast, rung=1),
            row("half", "variant", seed, 20.0, evaluations=fast if seed == 1 else never, rung=2),
        ]
    summary = summarise(made)
    assert of(summary, "plain")["to_return"] == pytest.approx(92.0)  # 20 + 0.9 * 80
    quick, half = of(summary, "quick"), of(summary, "half")
    assert (quick["seconds_to_return"], quick["reached"]) == (1.0, "2 of 2")
    assert quick["to_return_ratio"] == pytest.approx(2.0)
    assert (half["seconds_to_return"], half["reached"]) == (1.0, "1 of 2")
    assert math.isnan(half["to_return_ratio"])  # those that never arrive have no time to compare
    asked = summarise(made, to_return=99.0)
    assert of(asked, "plain")["seconds_to_return"] == 3.0


def test_without_evaluations_on_the_way_there_is_no_time_to_a_return():
    assert summarise(rows(3, [100.0] * 3), to_return=50.0)["to_return"].isna().all()


def test_a_seed_that_lacks_its_pair_is_left_out():
    made = rows(3, [100.0] * 3)[:-1]  # the last variant run is missing
    summary = summarise(made)
    assert of(summary, "other")["seeds"] == 2
    assert of(summary, "plain")["seeds"] == 3


def test_what_was_not_measured_says_so_and_order_is_that_of_the_plan():
    made = [row("barred", "variant", None, None, why="needs CUDA", rung=2), *reversed(rows(3, [100.0] * 3))]
    summary = summarise(made)
    assert list(summary["label"]) == ["plain", "plain again", "other", "barred"]
    assert of(summary, "barred")["not_measured"] == "needs CUDA"


def test_studies_are_kept_apart():
    other = [{**each, "study": "two", "sps": each["sps"] * 10} for each in rows(3, [100.0] * 3)]
    summary = summarise([*rows(3, [100.0] * 3), *other])
    assert list(summary["study"]) == ["one"] * 3 + ["two"] * 3
    assert of(summary[summary["study"] == "two"], "other")["sps_ratio"] == pytest.approx(2.0)


@pytest.mark.parametrize("made", [[], [{"kind": "measure", "slot": "replay"}]])
def test_no_training_rows_is_an_error(made):
    with pytest.raises(ValueError, match="training"):
        summarise(made)
