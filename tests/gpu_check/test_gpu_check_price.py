"""Costs by hand, and the size from which renting pays."""

import pytest

from rlbench.gpu_check import price


def test_cost_of_a_million_steps():
    """0.36 an hour is 0.0001 a second; a million steps at 10,000 a second take 100 seconds."""
    assert price.cost_per_million(0.36, 10_000) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("costs", "size"),
    [
        ([(1, 3.0, 1.0), (8, 1.0, 1.5), (64, 0.5, 1.5)], 8),
        ([(64, 0.5, 1.5), (1, 3.0, 1.0), (8, 1.0, 1.5)], 8),
        ([(1, 0.5, 1.0), (8, 2.0, 1.0), (64, 0.5, 1.0)], 64),  # a size that pays by chance, below one that does not
        ([(1, 1.0, 1.0)], None),
        ([(1, 0.5, 1.0), (64, 2.0, 1.0)], None),
        ([(1, 0.5, 1.0)], 1),
    ],
)
def test_renting_pays_from_the_size_on_which_it_stays_cheaper(costs, size):
    assert price.pays_from(costs) == size


def loop_row(num_envs, cpu_sps, gpu_sps):
    return {"section": "loop", "num_envs": num_envs, "cpu_sps": cpu_sps, "gpu_sps": gpu_sps}


def test_rows_say_what_each_size_costs(check):
    check.price, check.cpu_price = 0.72, 0.36
    check.rows = [loop_row(64, 1_000, 4_000), loop_row(1, 1_000, 500), loop_row(8, 1_000, None)]
    rows = list(price.prices(check))
    assert [row.get("num_envs") for row in rows] == [1, 64, None]
    assert rows[1]["cost"] == pytest.approx(0.05) and rows[1]["cpu_cost"] == pytest.approx(0.1)
    assert rows[1]["cpu_pays_below"] == pytest.approx(0.18)
    assert [row["verdict"] for row in rows[:2]] == ["the CPU is cheaper", "the GPU is cheaper"]
    assert rows[2]["pays_from"] == 64 and rows[2]["verdict"] == "renting pays from 64 envs on"


def test_the_cpu_costs_the_same_where_nothing_else_is_said(check):
    check.price, check.rows = 0.72, [loop_row(1, 1_000, 500)]
    one, last = price.prices(check)
    assert one["cpu_cost"] == pytest.approx(0.2) and last["verdict"] == "renting pays at no size that was timed"


def test_no_price_no_rows(check):
    assert list(price.prices(check)) == []


def test_nothing_timed_is_said(check):
    check.price = 1.0
    (row,) = price.prices(check)
    assert row["not_measured"].endswith("not measured on this machine")
