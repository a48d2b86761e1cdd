"""The benchmarks of sets of actions and of the game alone: what is compared, targets, rows; no test depends on a time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from benchmarks import evaluate_sets, othello_steps, pgx_othello
from benchmarks.targets import NOT_SLOWER, judged, target_cell, times_as_fast, unjudged
from rlbench.envs.othello import Othello
from rlbench.results import append, load
from rlbench.speedups import evaluate

needs_pgx = pytest.mark.skipif(importlib.util.find_spec("pgx") is None, reason="pgx is not installed")
needs_native = pytest.mark.skipif(Othello().why_not_native() is not None, reason="there is no C compiler")


def ratio_of(own: float, other: float, noise: float = 0.01, rounds: int = 8):
    """Two sides whose times differ by a factor; our own twice, up and down by `noise`."""
    times = np.full(rounds, own)
    again = times * np.where(np.arange(rounds) % 2, 1 + noise, 1 / (1 + noise))
    return times_as_fast(times, again, np.full(rounds, other))


def test_a_target_is_met_by_a_ratio_or_by_not_being_slower():
    twice = ratio_of(1.0, 2.0)
    assert twice.ratio == pytest.approx(2.0)
    assert [judged(twice, target)["met"] for target in (1.9, 2.1, NOT_SLOWER, None)] == [True, False, True, None]
    assert judged(ratio_of(2.0, 1.0), NOT_SLOWER)["met"] is False
    within = judged(ratio_of(1.005, 1.0), NOT_SLOWER)
    assert (within["verdict"], within["met"]) == ("no difference seen", True)
    assert judged(ratio_of(1.0, 9.0, rounds=3), 2.0)["met"] is None
    assert target_cell(judged(twice, 1.7)) == "at least 1.7x: met"
    assert target_cell(judged(twice, 40.0)) == "at least 40x: MISSED"
    assert target_cell(judged(ratio_of(1.0, 9.0, rounds=3), NOT_SLOWER)) == "not slower: too few rounds"
    assert target_cell(unjudged("baseline")) == "-"


def test_the_control_of_a_ratio_is_our_own_time_twice():
    own, again, other = np.array([1.0, 2.0]), np.array([1.5, 2.0]), np.array([8.0, 16.0])
    found = times_as_fast(own, again, other)
    assert found.ratio == pytest.approx(8.0)
    assert found.aa_high == pytest.approx(1.5)


def few(monkeypatch, *names: str) -> None:
    monkeypatch.setattr(evaluate, "VARIANTS", {name: evaluate.VARIANTS[name] for name in names})


def test_every_side_is_checked_before_it_is_timed(monkeypatch):
    few(monkeypatch, "loop", "padded", "packed", "packed_native")
    calls = evaluate_sets.calls_of(evaluate_sets.Case(5, longest=70))
    assert next(iter(calls)) == "packed"
    assert [len(call()[0]) for call in calls.values()] == [5] * len(calls)
    expected = calls["loop"]()
    for place in (0, 5):
        wrong = [part.clone() for part in expected]
        wrong[place] += 0.1 * wrong[place].abs().max()
        with pytest.raises(AssertionError, match="5 states, odd"):
            evaluate_sets.check_same(expected, wrong, "5 states, odd")


def test_targets_of_the_cases():
    small, large = evaluate_sets.JOBS[2], evaluate_sets.JOBS[3]
    assert [small.target(side) for side in ("loop", "padded", "grouped")] == [40.0, 1.7, NOT_SLOWER]
    assert [large.target(side) for side in ("loop", "packed_native", "packed_compiled")] == [NOT_SLOWER, None, None]
    names = [case.name for case in evaluate_sets.JOBS]
    assert names == ["1 state", "16 states", "256 states", "4,096 states", "256 states, one with 1,400"]


def test_rows_of_evaluating(monkeypatch, tmp_path):
    few(monkeypatch, "loop", "padded", "packed", *(["packed_native"] if Othello().why_not_native() is None else []))
    rows = evaluate_sets.measure(evaluate_sets.Case(3, targets={"loop": 1e9}), 5, True, lambda note: None)
    by_side = {row["side"]: row for row in rows}
    others = [name for name in evaluate.VARIANTS if name != "packed"]
    assert list(by_side) == ["packed", *others, evaluate_sets.SOURCES_LOOP, "packed again"]
    loop, packed = by_side["loop"], by_side["packed"]
    ratios = np.divide(loop["round_times"], packed["round_times"])
    assert loop["ratio"] == pytest.approx(float(np.median(ratios)))
    assert (loop["target"], loop["met"]) == (1e9, False)
    assert (packed["ratio"], packed["target"], by_side["packed again"]["target"]) == (None, None, None)
    assert evaluate_sets.format_rows(rows).endswith("quick: do not cite")
    assert len(load(append(tmp_path / "rows.jsonl", rows))) == len(rows)


NATIVE = {
    "masks": lambda games: othello_steps.native_call(games, False),
    "packed ids": lambda games: othello_steps.native_call(games, True),
    "whole steps": othello_steps.whole_step,
}


@needs_native
@pytest.mark.parametrize("make", NATIVE.values(), ids=NATIVE)
def test_calls_of_the_game_play_on(make):
    """A game has 60 plies and a few passes at most, so that each of 7 ends once or twice in 128 plies."""
    call = make(7)
    assert 7 <= call() + call() <= 28


@pytest.mark.parametrize("make", [othello_steps.compiled_masks, othello_steps.compiled_packed])
def test_calls_of_compiled_tensors_play_on(make, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **kwargs: function)
    call = make(7)
    assert 7 <= call() + call() <= 28


@needs_pgx
@pytest.mark.parametrize("make", [pgx_othello.at_its_best, pgx_othello.as_in_manual])
def test_calls_of_the_peer_play_on(make):
    call = make(7, 64, 1)
    assert 7 <= call() + call() <= 28


@needs_pgx
@needs_native
def test_rows_of_playing(monkeypatch):
    sides = {"masks, native": (othello_steps.native_call(5, False), 1e9)}
    monkeypatch.setattr(othello_steps, "our_calls", lambda games: sides)
    rows = othello_steps.measure(othello_steps.Playing(5), 5, True, lambda note: None)
    peer, manual, ours, again = rows
    assert [row["side"] for row in rows] == [
        othello_steps.PEER, othello_steps.MANUAL, "masks, native", othello_steps.PEER_AGAIN,
    ]  # fmt: skip
    for row, field in ((peer, "ratio"), (manual, "manual_ratio")):
        assert ours[field] == pytest.approx(float(np.median(np.divide(row["round_times"], ours["round_times"]))))
    assert (ours["met"], manual["met"], again["met"]) == (False, None, None)
    assert ours["steps_per_s"] == pytest.approx(1 / float(np.median(ours["round_times"])))
    assert othello_steps.format_rows(rows).endswith("quick: do not cite")
