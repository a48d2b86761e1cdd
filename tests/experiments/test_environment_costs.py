"""The experiments of notebook 05: crossings by hand, rows complete, processes only where they were asked for."""

import multiprocessing

import pytest

from rlbench.experiments.environments import over_sizes, pays_from, same_everywhere, step_costs


def rows(*points):
    return [{"size": size, "ratio": ratio, "verdict": verdict} for size, ratio, verdict in points]


@pytest.mark.parametrize(
    ("points", "cost"),
    [
        ([(1, 0.1, "slower"), (100, 0.5, "slower"), (10_000, 2.0, "faster")], 1000.0),  # halfway on both log axes
        ([(100, 0.25, "slower"), (10_000, 2.0, "faster")], 100 * 100 ** (2 / 3)),
        ([(100, 1.1, "no difference seen"), (1000, 2.0, "faster")], 100.0),
        ([(10, 1.5, "faster"), (100, 2.0, "faster")], 10.0),
        ([(1, 1.5, "faster"), (10, 0.5, "slower"), (100, 2.0, "faster")], 10 * 10**0.5),
        ([(1, 0.1, "slower"), (100, 1.05, "no difference seen")], None),
        ([], None),
    ],
)
def test_the_cost_from_which_processes_pay(points, cost):
    for order in (points, points[::-1]):
        assert pays_from(rows(*order)) == (None if cost is None else pytest.approx(cost))


def test_rows_of_a_sweep_over_the_cost_of_a_step():
    found = step_costs([1, 2000], [2], rounds=1, quick=True, progress=False)
    assert [(row["variant"], row["size"], row["processes"]) for row in found] == [
        ("async, 2 processes", 1, 2),
        ("async, 2 processes", 2000, 2),
    ]
    assert all(row["ratio"] > 0 and row["cores"] >= 1 and row["quick"] for row in found)
    assert found[1]["step_us"] > found[0]["step_us"] > 0  # work that takes a thousand times as long
    assert multiprocessing.active_children() == []


def test_processes_are_measured_where_they_are_asked_for():
    found = over_sizes([1, 3], [1], rounds=1, quick=True, progress=False, device="cpu")
    sizes = {size: [row["variant"] for row in found if row["size"] == size] for size in (1, 3)}
    assert sizes[1] == ["one_by_one", "sync", "async", "batched", "native"]
    assert sizes[3] == ["one_by_one", "sync", "batched", "native"]
    assert {row["baseline"] for row in found} == {"one_by_one"}
    assert all(row["same"] in (True, None) for row in found)


def test_answers_of_all_executors():
    found = same_everywhere([1, 3], [], [1, 2], "cpu")
    assert len(found) == 4 * 2 * 2 and all(row["same"] in (True, None) for row in found)
