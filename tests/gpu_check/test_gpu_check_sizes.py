"""Crossover, games, action sets and paired slots: the CPU at its best, and rows that say why there is nothing."""

import dataclasses

import numpy as np
import pytest
import torch

from rlbench.gpu_check import boards, crossover, paired, sets
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


def test_games_are_played_on_both_sides(pretending):
    rows = list(boards.batched_games(pretending))
    assert [row["num_envs"] for row in rows] == [16, 64]
    assert all(row["error"] is None and row["cpu_sps"] > 0 and row["gpu_sps"] > 0 for row in rows)


def test_games_go_on_where_they_stand():
    play = boards.Play(8, torch.device("cpu"), 1, 0.0)
    first = play.legal
    assert play.stretch() > 0 and play.number == boards.STEPS
    assert play.stretch() > 0 and play.number == 2 * boards.STEPS and len(play.legal.ids) != len(first.ids)


def test_a_number_of_games_that_fails_leaves_the_others(monkeypatch, check):
    def timed(check, num_envs):
        if num_envs == 16:
            raise RuntimeError("out of memory")
        return {"cpu_sps": 1.0}

    monkeypatch.setattr(boards, "_timed", timed)
    rows = list(boards.batched_games(check))
    assert "out of memory" in rows[0]["error"] and rows[1]["error"] is None


def test_sets_of_actions_are_timed_against_padded_ones(check):
    rows = {row["variant"]: row for row in sets.action_sets(check)}
    assert set(rows) == {*sets.VARIANTS, "loop"} <= set(SPEEDUPS["evaluate"].variants)
    assert rows["padded"]["verdict"] == "baseline" and rows["loop"]["median_us"] > rows["padded"]["median_us"] > 0
    assert "takes long to build" in rows["packed_compiled"]["not_measured"]
    assert all(row["section"] == "x" and row["kind"] == "gpu-check" and row["error"] is None for row in rows.values())


def test_one_state_at_a_time_is_left_out_of_large_sizes(monkeypatch, check):
    check.quick, asked = False, []
    monkeypatch.setattr(sets, "timed", lambda check, size, names: asked.append((size, names)) or [])
    rows = list(sets.action_sets(check))
    assert [size for size, _ in asked] == list(sets.SIZES)
    assert "loop" in asked[0][1] and all("loop" not in names for _, names in asked[1:])
    assert [(row["variant"], row["size"]) for row in rows] == [("loop", size) for size in sets.SIZES[1:]]


def test_a_size_of_sets_that_fails_or_has_no_time_leaves_the_others(monkeypatch, check):
    def timed(check, size, names):
        raise RuntimeError("out of memory")

    check.quick = False
    monkeypatch.setattr(sets, "timed", timed)
    assert [row["size"] for row in sets.action_sets(check) if row["error"]] == list(sets.SIZES)
    check.deadline = 0.0
    assert all(row["not_measured"].startswith("cut short") for row in sets.action_sets(check))
