"""Crossover and paired slots: the CPU at its best, and rows that say why there is nothing."""

import dataclasses

import numpy as np
import pytest

from rlbench.gpu_check import crossover, paired
from rlbench.speedups import SPEEDUPS
from rlbench.timing import Paired


@pytest.mark.parametrize(("seconds", "threads"), [({1: 2.0, 4: 1.0}, 4), ({1: 1.0, 4: 2.0}, 1), ({1: 1.0, 4: 1.0}, 1)])
def test_the_cpu_gets_the_threads_that_are_faster(monkeypatch, seconds, threads):
    now = [0.0]
    monkeypatch.setattr(crossover.torch, "set_num_threads", lambda count: now.append(seconds[count]))

    def call():
        now[0] += now[-1]

    assert crossover.best_threads(call, 4, lambda: now[0]) == threads
    assert crossover.best_threads(call, 1, lambda: now[0]) == 1


def test_ratio_by_hand():
    times = np.tile([8e-6, 2e-6, 8e-6], (5, 1))
    found = crossover.numbers(Paired(("baseline", "gpu", "baseline again"), times, (1, 1, 1), {}))
    assert found["cpu_us"] == pytest.approx(8) and found["gpu_us"] == pytest.approx(2)
    assert found["ratio"] == pytest.approx(4) and found["verdict"] == "faster"


def test_no_complete_round_is_said():
    none = np.zeros((0, 2))
    assert "cut short" in crossover.numbers(Paired(("baseline", "baseline again"), none, (0, 0), {}))["not_measured"]


def test_one_cell_is_measured(pretending):
    (row,) = crossover.crossover(pretending)
    assert (row["batch_size"], row["hidden"], row["error"]) == (32, 64, None)
    assert row["cpu_us"] > 0 and row["gpu_us"] > 0


def test_cells_without_time_say_so(check):
    check.deadline = 0.0
    assert all(row["not_measured"].startswith("cut short") for row in crossover.crossover(check))
    assert all(row["not_measured"].startswith("cut short") for row in paired.paired_slots(check))


def test_rows_of_measure_become_ours(monkeypatch, check):
    monkeypatch.setattr(paired, "SPEEDUPS", {"metrics": dataclasses.replace(SPEEDUPS["metrics"], sizes=(8,))})
    rows = list(paired.paired_slots(check))
    assert [row["name"] for row in rows] == ["metrics=on_device", "metrics=item_each_step"]
    assert all(row["kind"] == "gpu-check" and row["section"] == "slots" and row["same"] for row in rows)
    assert rows[0]["verdict"] == "baseline"


@pytest.mark.parametrize(
    ("error", "verdicts"),
    [
        (ModuleNotFoundError("No module named 'gymnasium'"), ["not measured", "not measured"]),
        (OSError("gone"), ["failed"]),
    ],
)
def test_a_slot_that_cannot_be_asked_leaves_the_others(monkeypatch, check, error, verdicts):
    def measure(names, **rest):
        if names == ["transfer"]:
            return []
        raise error

    monkeypatch.setattr(paired, "measure", measure)
    monkeypatch.setattr(paired, "SPEEDUPS", {name: SPEEDUPS[name] for name in ("metrics", "transfer")})
    assert [row["verdict"] for row in paired.paired_slots(check)] == verdicts


def test_a_missing_package_is_no_failure():
    row = {"slot": "s", "variant": "v", "not_measured": None, "same": False, "verdict": "failed"}
    row["error"] = "ModuleNotFoundError: No module named 'gymnasium'"
    found = paired.as_ours(row)
    assert found["same"] is None and found["error"] is None and "gymnasium" in found["not_measured"]
