"""Market: real data, splits in time, scalers fitted on train only, walk-forward folds, bars a year."""

import pickle

import numpy as np
import pandas as pd
import pytest

from rlbench import market as market_module
from rlbench.market import FEATURE_LIMIT, Scaler, from_prices, real
from rlbench.prices.bars_per_year import bars_per_year
from rlbench.prices.errors import PriceError


def prices_of(close, start="2020-01-01", freq="D"):
    close = np.asarray(close, dtype=float)
    index = pd.date_range(start, periods=len(close), freq=freq, tz="UTC", name="time")
    return pd.DataFrame(dict.fromkeys(("open", "high", "low", "close"), close) | {"volume": 1.0}, index=index)


def walk(length, seed=0):
    return prices_of(100 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0, 0.01, length))))


def test_real_apple_is_adjusted_for_splits():
    market = real("AAPL")
    assert len(market) == 3270 and not market.simulated
    assert list(market.prices.columns) == ["open", "high", "low", "close", "volume"]
    assert str(market.time.tz) == "UTC" and market.time.is_monotonic_increasing and market.time.is_unique
    # First row of the file: open 118.56, close 130.31, volume 9616100, adjusted close 4.186662803811.
    ratio = 4.186662803811 / 130.31
    first = market.prices.iloc[0]
    assert first["close"] == pytest.approx(4.186662803811, rel=1e-12)
    assert first["open"] == pytest.approx(118.56 * ratio, rel=1e-12)
    assert first["volume"] == pytest.approx(9616100 / ratio, rel=1e-12)
    change = pd.Series(market.close, index=market.time).pct_change()
    assert abs(change["2005-02-28"]) < 0.05 and abs(change["2000-06-21"]) < 0.15  # splits are gone
    assert change["2000-09-29"] == pytest.approx(-0.519, abs=0.001)  # the crash stays


@pytest.mark.parametrize("ticker", ["AAPL", "FB", "GOOG", "IBM", "MSFT"])
def test_every_real_ticker_keeps_its_bars_in_order(ticker):
    bars = real(ticker).prices
    assert (bars["low"] <= bars[["open", "close"]].min(axis=1)).all()
    assert (bars["high"] >= bars[["open", "close"]].max(axis=1)).all()
    assert np.isfinite(real(ticker).features).all()


def test_unknown_ticker_and_absent_data_say_what_to_do(monkeypatch, tmp_path):
    with pytest.raises(PriceError, match=r"'XXX'.*AAPL, FB, GOOG, IBM, MSFT"):
        real("XXX")
    monkeypatch.setattr(market_module, "DATA", tmp_path)
    with pytest.raises(PriceError, match="pip install --no-deps -e"):
        real()


def test_split_is_in_time_and_shares_the_scaler_of_train():
    market = from_prices(walk(100), name="w", train=0.5, validation=0.3)
    train, validation, test = market.split()
    assert [len(p) for p in (train, validation, test)] == [50, 30, 20]
    assert train.time[-1] < validation.time[0] and validation.time[-1] < test.time[0]
    assert train.scaler is validation.scaler is test.scaler
    np.testing.assert_allclose(market.scaler.mean, market.raw_features[:50].mean(axis=0))
    np.testing.assert_allclose(train.features.astype(float).mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(train.features[:, 0].astype(float).std(), 1, atol=1e-5)
    joined = np.concatenate([p.features for p in (train, validation, test)])
    assert joined.tobytes() == market.features.tobytes() and joined.dtype == np.float32


def test_slices_are_views():
    market = real()
    part = market.slice(10, 20)
    assert np.shares_memory(part.features, market.features) and len(part) == 10
    assert part.close.tolist() == market.close[10:20].tolist()


def test_a_market_travels_to_another_process():
    market = from_prices(walk(20), name="w", features=lambda p: p["close"].rename("x"))
    again = pickle.loads(pickle.dumps(market))
    assert again.features.tobytes() == market.features.tobytes() and again.time.equals(market.time)


def test_walk_forward_folds_follow_one_another():
    market = from_prices(walk(600), name="w")
    folds = market.walk_forward(4)
    assert [len(f.train) for f in folds] == [100, 200, 300, 400]
    assert [f.test.time[0] for f in folds] == [market.time[i] for i in (200, 300, 400, 500)]
    assert folds[-1].test.time[-1] == market.time[-1]
    for fold in folds:
        expected = Scaler.fit(fold.train.raw_features)
        np.testing.assert_array_equal(fold.train.scaler.mean, expected.mean)
        assert fold.test.scaler is fold.train.scaler
        assert fold.train.time[-1] < fold.validation.time[0] < fold.test.time[0]
    rolling = market.walk_forward(4, expanding=False)
    assert [len(f.train) for f in rolling] == [100] * 4


@pytest.mark.parametrize(("length", "call"), [(5, "split"), (7, "walk_forward")])
def test_too_few_bars_to_split(length, call):
    with pytest.raises(PriceError, match="each needs at least 2"):
        getattr(from_prices(walk(length), name="w"), call)()


@pytest.mark.parametrize(("train", "validation"), [(0.0, 0.2), (0.9, 0.2), (-1, 0), (0.5, -0.1), (float("nan"), 0.1)])
def test_shares_are_checked(train, validation):
    with pytest.raises(PriceError, match="shares of the bars"):
        from_prices(walk(10), name="w", train=train, validation=validation)


def test_future_prices_leave_earlier_observations_bit_identical():
    """With the scaler frozen, no earlier row of features moves by a bit, wherever the future begins."""
    prices = walk(300)
    market = from_prices(prices, name="w")
    for cut in (1, 2, 60, 150, 299):
        changed = prices.copy()
        changed.iloc[cut:] *= np.random.default_rng(cut).uniform(0.5, 2.0, (300 - cut, 1))
        again = from_prices(changed, name="w", scaler=market.scaler)
        assert again.features[:cut].tobytes() == market.features[:cut].tobytes()
        assert again.close[:cut].tobytes() == market.close[:cut].tobytes()


def test_validation_and_test_prices_do_not_touch_the_scaler():
    prices = walk(300)
    changed = prices.copy()
    changed.iloc[180:] *= 3.0
    first, second = from_prices(prices, name="w"), from_prices(changed, name="w")
    np.testing.assert_array_equal(first.scaler.mean, second.scaler.mean)
    np.testing.assert_array_equal(first.scaler.std, second.scaler.std)


def test_a_frozen_scaler_must_fit():
    with pytest.raises(PriceError, match="10 features"):
        from_prices(walk(50), name="w", scaler=Scaler(np.zeros(3), np.ones(3)))
    with pytest.raises(PriceError, match="above zero"):
        from_prices(walk(50), name="w", scaler=Scaler(np.zeros(10), np.zeros(10)))
    with pytest.raises(PriceError, match=r"\.scaler, not"):
        from_prices(walk(50), name="w", scaler=(np.zeros(10), np.ones(10)))


def test_features_are_bounded_and_constant_ones_stay_finite():
    market = from_prices(prices_of([7.0] * 50), name="flat")
    assert np.isfinite(market.features).all()
    jump = from_prices(prices_of([7.0, 7.001] * 40 + [700.0] * 20), name="jump")
    assert np.abs(jump.features).max() <= FEATURE_LIMIT


def test_given_features_stand_beside_ours_and_a_function_replaces_ours():
    prices = walk(50)
    given = pd.DataFrame({"feature_x": np.arange(50.0)}, index=prices.index)
    both = from_prices(prices, name="w", given=given)
    assert both.feature_names[-1] == "feature_x" and len(both.feature_names) == 11
    own = from_prices(prices, name="w", given=given, features=lambda p: p["feature_x"].rename("twice") * 2)
    assert own.feature_names == ("twice", "feature_x")
    assert own.raw_features[:, 0].tolist() == [2.0 * i for i in range(50)]


def test_describe_tells_bars_a_year_splits_and_notices():
    text = real().describe()
    for part in ("AAPL (as loaded): 3,270 bars", "bars per year", "train 1,962", "test 654", "adjusted for splits"):
        assert part in text


def test_one_bar_is_refused():
    with pytest.raises(PriceError, match="at least 2"):
        from_prices(walk(1), name="w")


def sessions(days, per_day, minutes, start="2021-03-01"):
    dates = pd.bdate_range(start, periods=days, tz="UTC")
    clock = pd.to_timedelta(14 * 60 + 30 + minutes * np.arange(per_day), unit="min")
    return pd.DatetimeIndex([d + c for d in dates for c in clock])


@pytest.mark.parametrize(
    ("times", "expected", "tolerance"),
    [
        (pd.bdate_range("2010-01-01", "2019-12-31", tz="UTC"), 365.25 * 5 / 7, 1),  # all weekdays, no holidays
        (pd.bdate_range("2020-01-01", periods=60, tz="UTC"), 252, 0),
        (pd.date_range("2020-01-01", periods=60, tz="UTC"), 365.25, 0),
        (pd.date_range("2015-01-01", periods=300, freq="W", tz="UTC"), 365.25 / 7, 0.01),
        (pd.date_range("2000-01-01", periods=120, freq="MS", tz="UTC"), 12, 0.05),
        (sessions(20, 390, 1), 252 * 390, 0),
        (sessions(1, 390, 1), 252 * 390, 0),
        (sessions(20, 7, 60), 252 * 7, 0),
        (sessions(520, 7, 60), 365.25 * 5 / 7 * 7, 10),
        (pd.date_range("2020-01-01", periods=100, freq="h", tz="UTC"), 365.25 * 24, 0),
        (pd.date_range("2020-01-01", periods=30_000, freq="min", tz="UTC"), 365.25 * 1440, 0),
        (pd.date_range("2020-01-01", periods=20_000, freq="h", tz="UTC"), 365.25 * 24, 0.01),
        (pd.DatetimeIndex(["2020-01-01", "2020-01-02"], tz="UTC"), 252, 0),
    ],
)
def test_bars_per_year(times, expected, tolerance):
    assert bars_per_year(times) == pytest.approx(expected, abs=max(tolerance, 1e-6))


def test_a_hole_of_years_does_not_count():
    first = pd.date_range("2010-01-01", periods=400, tz="UTC")
    second = pd.date_range("2018-01-01", periods=400, tz="UTC")
    assert bars_per_year(first.append(second)) == pytest.approx(365.25)


def test_currency_hours_count_five_days():
    hours = pd.date_range("2021-03-01", periods=24 * 56, freq="h", tz="UTC")
    sunday_evening = (hours.day_of_week == 6) & (hours.hour >= 22)
    opened = hours[(hours.day_of_week < 5) & ~((hours.day_of_week == 4) & (hours.hour >= 22)) | sunday_evening]
    assert bars_per_year(opened) == pytest.approx(252 * 24)


@pytest.mark.filterwarnings("error")
def test_a_feature_too_large_to_scale_is_named():
    with pytest.raises(PriceError, match="feature 'huge'.*smaller values"):
        from_prices(walk(50), name="w", features=lambda p: pd.Series(np.arange(50) * 1e300, p.index, name="huge"))
