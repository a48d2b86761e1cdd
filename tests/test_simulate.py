"""Simulated markets: anchored minutes, and processes with known moments and a known best policy."""

import math

import numpy as np
import pandas as pd
import pytest

from rlbench import simulate
from rlbench.market import real
from rlbench.prices.errors import PriceError


@pytest.fixture(scope="module")
def minutes():
    return simulate.minutes("AAPL", seed=3)


def test_minutes_reach_every_real_day_exactly(minutes):
    days = real("AAPL").prices
    assert len(minutes) == len(days) * 390 > 1_200_000
    bars = {c: minutes.prices[c].to_numpy().reshape(-1, 390) for c in minutes.prices}
    np.testing.assert_array_equal(bars["open"][:, 0], days["open"])
    np.testing.assert_array_equal(bars["close"][:, -1], days["close"])
    np.testing.assert_array_equal(bars["high"].max(axis=1), days["high"])
    np.testing.assert_array_equal(bars["low"].min(axis=1), days["low"])
    np.testing.assert_allclose(bars["volume"].sum(axis=1), days["volume"], rtol=1e-12)
    np.testing.assert_array_equal(bars["open"][:, 1:], bars["close"][:, :-1])


def test_minutes_are_valid_bars_and_called_simulated(minutes):
    bars = minutes.prices
    assert (bars["low"] <= bars[["open", "close"]].min(axis=1)).all()
    assert (bars["high"] >= bars[["open", "close"]].max(axis=1)).all()
    assert (bars > 0).all(axis=None) and np.isfinite(minutes.features).all()
    assert minutes.simulated and "simulated" in minutes.name and "simulated" in minutes.describe()
    assert minutes.split().test.simulated
    assert minutes.bars_per_year == pytest.approx(251.5 * 390, rel=0.01)


def test_minutes_follow_new_york_through_the_clock_change(minutes):
    local = minutes.time.tz_convert("America/New_York")
    assert set(local[::390].strftime("%H:%M")) == {"09:30"} and set(local[389::390].strftime("%H:%M")) == {"15:59"}
    assert minutes.time.is_monotonic_increasing and minutes.time.is_unique


def test_minute_path_looks_like_a_path(minutes):
    """Neighbouring minute returns within a day are nearly uncorrelated, and few minutes stand still."""
    close = np.log(minutes.close.reshape(-1, 390))
    steps = np.diff(close, axis=1)
    correlation = np.mean(steps[:, 1:] * steps[:, :-1]) / np.mean(steps**2)
    assert abs(correlation) < 0.05
    assert np.mean(steps == 0) < 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: simulate.minutes("FB", seed=seed, days=3),
        lambda seed: simulate.ornstein_uhlenbeck(100, seed=seed),
        lambda seed: simulate.sine(100, seed=seed),
        lambda seed: simulate.martingale(100, seed=seed),
        lambda seed: simulate.martingale(100, seed=seed, coin=True),
    ],
)
def test_seeded_and_no_global_state(make):
    state = np.random.get_state()[1].tobytes()
    first, again, other = make(1), make(1), make(2)
    assert first.close.tobytes() == again.close.tobytes() != other.close.tobytes()
    assert np.random.get_state()[1].tobytes() == state
    assert first.simulated and "simulated" in first.name and np.isfinite(first.features).all()


def test_ornstein_uhlenbeck_follows_its_recursion_and_moments():
    market = simulate.ornstein_uhlenbeck(200_000, seed=5, mean=50.0, reversion=0.2, volatility=0.02)
    process = market.process
    assert process["kind"] == "ornstein_uhlenbeck" and process["phi"] == pytest.approx(0.8)
    assert process["stationary_std"] == pytest.approx(0.02 / 0.6)  # sqrt(1 - 0.64) = 0.6
    x = np.log(market.close) - math.log(50.0)
    noise = (x[1:] - 0.8 * x[:-1]) / 0.02
    assert abs(noise.mean()) < 4 / math.sqrt(len(noise)) and noise.std() == pytest.approx(1, abs=0.01)
    assert abs(np.mean(noise[1:] * noise[:-1])) < 4 / math.sqrt(len(noise))
    assert x.std() == pytest.approx(0.02 / 0.6, rel=0.03)
    assert market.feature_names == ("deviation",)
    np.testing.assert_allclose(market.raw_features[:, 0], x / process["stationary_std"], atol=1e-9)


def test_sine_repeats_and_its_features_tell_the_phase():
    market = simulate.sine(200, seed=1, period=20, amplitude=0.1)
    np.testing.assert_allclose(market.close[20:], market.close[:-20], rtol=1e-9)
    assert np.log(market.close / 100).max() == pytest.approx(0.1, rel=0.02)
    np.testing.assert_allclose(np.hypot(*market.raw_features.T), 1.0)
    np.testing.assert_allclose(np.log(market.close / 100), 0.1 * market.raw_features[:, 0], atol=1e-12)
    # Holding the sign of the cosine half a bar ahead is always right.
    half = math.pi / 20
    ahead = market.raw_features[:-1, 1] * math.cos(half) - market.raw_features[:-1, 0] * math.sin(half)
    assert (np.sign(ahead) == np.sign(np.diff(market.close)))[np.abs(ahead) > 1e-9].all()


@pytest.mark.parametrize("coin", [False, True])
def test_nothing_is_earned_on_a_martingale(coin):
    """The mean simple return of following, and of fading, the last bar is within four standard errors of zero."""
    market = simulate.martingale(100_000, seed=7, coin=coin)
    simple = market.close[1:] / market.close[:-1] - 1
    if coin:
        np.testing.assert_allclose(np.abs(simple), 0.01, rtol=1e-9)
    bound = 4 * 0.01 / math.sqrt(len(simple))  # about 0.00013
    assert abs(simple.mean()) < bound
    assert abs(np.mean(np.sign(simple[:-1]) * simple[1:])) < bound


def test_martingale_features_do_not_know_the_next_return():
    """Look-ahead would show as a correlation far above its standard error."""
    market = simulate.martingale(100_000, seed=8, coin=True)
    following = np.sign(np.diff(market.close))
    known = market.features[:-1].astype(float)
    correlation = [np.corrcoef(known[:, i], following)[0, 1] for i in range(known.shape[1]) if known[:, i].std() > 0]
    assert max(map(abs, correlation)) < 4.5 / math.sqrt(len(following))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: simulate.ornstein_uhlenbeck(1), "bars=1"),
        (lambda: simulate.ornstein_uhlenbeck(10, reversion=0), "reversion=0"),
        (lambda: simulate.ornstein_uhlenbeck(10, volatility=float("nan")), "volatility=nan"),
        (lambda: simulate.sine(10, period=1), "period=1"),
        (lambda: simulate.martingale(10, start=-1), "start=-1"),
        (lambda: simulate.minutes(days=0), "days=0"),
        (lambda: simulate.minutes("XXX"), "XXX"),
    ],
)
def test_parameters_outside_their_range_are_refused(call, name):
    with pytest.raises(PriceError, match=name):
        call()


def test_two_bars_are_enough():
    assert len(simulate.ornstein_uhlenbeck(2)) == len(simulate.sine(2)) == len(simulate.martingale(2)) == 2


def test_times_are_utc_and_hourly():
    market = simulate.martingale(48)
    assert market.bars_per_year == pytest.approx(8766) and market.time[1] - market.time[0] == pd.Timedelta("1h")
