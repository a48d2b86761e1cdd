"""The best equity in hindsight: against brute force through the trading env, by hand, and at odd shapes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.envs import optimum
from rlbench.envs.optimum import best_equity

SETS = [(-1, 0, 1), (0, 1), (-1, 1), (-2, -0.3, 0.5, 3), (1,), (-3,), (-3, 3), (0.5, 2, 0), (0.25, 0.75)]


def path(seed, bars, volatility):
    return 30.0 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0.0, volatility, bars)))


@given(
    seed=st.integers(0, 100_000),
    positions=st.sampled_from(SETS),
    fee=st.sampled_from([0.0, 1e-3, 0.05, 0.4]),
    borrow_rate=st.sampled_from([0.0, 0.02]),
    slippage=st.sampled_from([0.0, 0.01]),
    volatility=st.sampled_from([0.02, 0.1, 0.6]),  # the last one ruins shorts and loans
    bars=st.integers(2, 6),
)
@settings(max_examples=250, deadline=None)
def test_no_sequence_of_actions_does_better(
    whole, equities, seed, positions, fee, borrow_rate, slippage, volatility, bars
):
    close = path(seed, bars, volatility)
    costs = {"fee": fee, "borrow_rate": borrow_rate, "slippage": slippage}
    found = best_equity(close, positions, **costs)
    env = whole(close, positions=positions, **costs)
    every = itertools.product(range(len(positions)), repeat=bars - 1)
    assert found.equity == pytest.approx(max(equities(env, actions)[-1] for actions in every), rel=1e-9)
    assert found.equity == pytest.approx(equities(env, found.actions.tolist())[-1], rel=1e-9)
    assert math.exp(found.log_equity) == pytest.approx(found.equity, rel=1e-12)


@pytest.mark.parametrize("positions", [(-1, 0, 1), (-2, -0.3, 0.5, 3), (-3, 3), (0, 0.5, 2.5)])
@pytest.mark.parametrize("fee", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("borrow_rate", [0.0, 0.03])
def test_dropping_lines_loses_nothing(monkeypatch, positions, fee, borrow_rate):
    for seed, volatility in itertools.product(range(2), (0.01, 0.1, 0.3)):
        close = path(seed, 150, volatility)
        monkeypatch.setattr(optimum, "_ROOM", 10**9)
        everything = best_equity(close, positions, fee, borrow_rate)
        monkeypatch.setattr(optimum, "_ROOM", 0)
        monkeypatch.setattr(optimum, "_GROWTH", 0)
        weeded = best_equity(close, positions, fee, borrow_rate)
        monkeypatch.undo()
        assert weeded.log_equity == pytest.approx(everything.log_equity, abs=1e-10)
        assert best_equity(close, positions, fee, borrow_rate).log_equity == pytest.approx(weeded.log_equity, abs=1e-10)


def test_actions_on_a_longer_path_reach_the_equity_in_the_env(whole, equities):
    close = path(7, 2_000, 0.01)
    found = best_equity(close, (-1, -0.5, 0, 1, 1.5), fee=1e-3, borrow_rate=1e-4, slippage=1e-4)
    env = whole(close, positions=(-1, -0.5, 0, 1, 1.5), fee=1e-3, borrow_rate=1e-4, slippage=1e-4)
    assert len(found.actions) == 1_999
    assert math.log(equities(env, found.actions.tolist())[-1]) == pytest.approx(found.log_equity, abs=1e-8)


def test_by_hand_without_fees():
    # Long into 120, short to 60 (half as much again), long to 90 (half as much again).
    found = best_equity([100.0, 120.0, 60.0, 90.0], fee=0.0)
    assert found.equity == pytest.approx(1.2 * 1.5 * 1.5)
    assert found.actions.tolist() == [2, 0, 2]


def test_by_hand_with_a_fee_that_eats_the_gain():
    # +1 % is not worth two sides of 1 %, nor is one side (the end needs no sale): the best is to stay flat.
    found = best_equity([100.0, 101.0, 100.0, 101.0], (0, 1), fee=0.01)
    assert found.equity == 1.0
    assert found.actions.tolist() == [0, 0, 0]
    # +10 % is worth one side: 0.99 * 1.1.
    assert best_equity([100.0, 110.0], (0, 1), fee=0.01).equity == pytest.approx(1.089)


def test_a_held_short_drifts():
    # One share short from 100 earns 50 on the way to 50. To be short again with all of it means leaving first.
    assert best_equity([100.0, 80.0, 50.0], (-1,), fee=0.0).equity == pytest.approx(1.5)
    assert best_equity([100.0, 80.0, 80.0, 50.0], (-1, 0), fee=0.0).equity == pytest.approx(1.2 * 1.375)


def test_when_every_course_ends_in_bankruptcy(whole, equities):
    found = best_equity([100.0, 250.0, 100.0], (-1,), fee=0.0)
    assert found.equity == 1e-6
    assert found.actions.tolist() == [0]
    assert equities(whole([100.0, 250.0, 100.0], positions=(-1,)), [0])[-1] == 1e-6


def test_more_fee_never_helps_and_more_positions_never_hurt():
    close = path(1, 400, 0.02)
    by_fee = [best_equity(close, fee=fee).log_equity for fee in (0.0, 1e-4, 1e-3, 1e-2, 0.1)]
    assert by_fee == sorted(by_fee, reverse=True)
    assert best_equity(close, (0, 1)).log_equity <= best_equity(close, (-1, 0, 1)).log_equity


def test_gains_beyond_float64_are_still_counted():
    found = best_equity(np.tile([1.0, 2.0], 1_200), (0, 1), fee=0.0)
    assert found.log_equity == pytest.approx(1_200 * math.log(2.0))
    assert found.equity == math.inf


@pytest.mark.parametrize(
    ("kwargs", "name"),
    [
        ({"close": [1.0]}, "close"),
        ({"close": [1.0, math.nan]}, "close"),
        ({"positions": (1, 1)}, "positions"),
        ({"fee": 1.0}, "fee"),
        ({"borrow_rate": -1.0}, "borrow_rate"),
        ({"slippage": math.nan}, "slippage"),
    ],
)
def test_bad_arguments_are_named(kwargs, name):
    with pytest.raises(ValueError, match=rf"^{name}.*accepted"):
        best_equity(**{"close": [1.0, 2.0]} | kwargs)
