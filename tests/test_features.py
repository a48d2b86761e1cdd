"""Features: hand-worked values, causality to the bit, finiteness on awkward prices, readers' own functions."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.features import apply_function, check_causal, combine, compute
from rlbench.prices.errors import PriceError


def bars(close, volume=None, spread=0.0):
    close = np.asarray(close, dtype=float)
    opens = np.concatenate([close[:1], close[:-1]])
    return pd.DataFrame(
        {
            "open": opens,
            "high": np.maximum(opens, close) * (1 + spread),
            "low": np.minimum(opens, close) / (1 + spread),
            "close": close,
            "volume": np.ones(len(close)) if volume is None else np.asarray(volume, dtype=float),
        },
        index=pd.date_range("2020-01-01", periods=len(close), tz="UTC", name="time"),
    )


def random_bars(length, seed=0):
    rng = np.random.default_rng(seed)
    return bars(100 * np.exp(np.cumsum(rng.normal(0, 0.01, length))), rng.integers(0, 5, length), 0.005)


def test_hand_worked_values():
    table = compute(bars([100, 110, 99], [1, 1, 4]))
    up, down = math.log(1.1), math.log(0.9)
    size = math.sqrt((0 + up**2 + down**2) / 3)
    last = table.iloc[2]
    assert last["return_1"] == pytest.approx(down / size)
    assert last["return_5"] == pytest.approx((up + down) / (size * math.sqrt(2)))
    assert last["volume"] == pytest.approx(math.log((1 + 4 / 2) / 2))  # mean volume (1 + 1 + 4) / 3 = 2
    assert last["rsi"] == pytest.approx((up + down) / (up - down))
    assert last["close_in_range"] == pytest.approx(-1.0)
    assert last["from_average"] == pytest.approx(math.log(99 / 103) / (size * math.sqrt(20)))
    assert last["volatility"] == pytest.approx(0.0, abs=1e-12)
    # ranges ln 1, ln 1.1, ln (110 / 99): mean of three
    ranges = [0, math.log(1.1), math.log(110 / 99)]
    assert last["range"] == pytest.approx(math.log((1 + ranges[2] / (sum(ranges) / 3)) / 2))


def test_first_row_is_neutral():
    first = compute(bars([100, 110, 99])).iloc[0]
    assert (first == 0).all()


def test_windows_end_where_they_should():
    """A single move leaves return_5 after five bars and rsi after fourteen."""
    table = compute(bars([100.0] * 10 + [110.0] * 30))
    assert table["return_5"].iloc[14] > 0 and table["return_5"].iloc[15] == 0
    assert table["rsi"].iloc[23] == pytest.approx(1.0)
    assert abs(table["from_average"].iloc[28]) > 1e-6
    assert table["from_average"].iloc[30] == pytest.approx(0.0, abs=1e-9)


def test_prices_in_another_unit_give_the_same_features():
    prices = random_bars(300)
    scaled = prices * [1024.0, 1024.0, 1024.0, 1024.0, 1.0]
    np.testing.assert_allclose(compute(scaled), compute(prices), atol=1e-9)


@pytest.mark.parametrize(
    "prices",
    [
        bars([5.0]),
        bars([5.0] * 100),
        bars([5.0] * 100, np.zeros(100)),
        bars([5.0] * 70 + [50.0] + [5.0] * 70, [0] * 70 + [1e12] + [0] * 70),
        bars(np.geomspace(1e-8, 1e8, 200)),
        bars([1e-12, 1e12] * 30),
    ],
)
def test_awkward_prices_give_finite_float32(prices):
    assert np.isfinite(compute(prices).to_numpy().astype(np.float32)).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 199), st.floats(0.01, 100))
def test_future_prices_leave_earlier_features_bit_identical(seed, cut, factor):
    prices = random_bars(200, seed)
    changed = prices.copy()
    changed.iloc[cut:] *= factor
    before, after = compute(prices).to_numpy()[:cut], compute(changed).to_numpy()[:cut]
    assert before.tobytes() == after.tobytes()


def test_check_causal_accepts_ours_and_names_a_peeking_column():
    prices = random_bars(120)
    check_causal(compute, prices)
    with pytest.raises(PriceError, match="'ahead' looks ahead.*row"):
        check_causal(lambda p: pd.DataFrame({"fine": p["close"], "ahead": p["close"].shift(-1)}), prices)
    with pytest.raises(PriceError, match="looks ahead"):
        check_causal(lambda p: (p["close"] - p["close"].mean()).rename("centred"), prices)


def test_check_causal_leaves_the_prices_alone():
    prices = random_bars(50)
    copy = prices.copy()
    check_causal(compute, prices)
    pd.testing.assert_frame_equal(prices, copy)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p: p["close"].to_numpy()[1:], "49 rows for 50 bars"),
        (lambda p: np.zeros((50, 2, 2)), r"shape \(50, 2, 2\)"),
        (lambda p: pd.DataFrame(index=p.index), "no column"),
        (lambda p: p[["close"]].iloc[::-1], "another order"),
        (lambda p: p["close"].astype(str) + "x", "not numbers"),
    ],
)
def test_bad_feature_functions_are_refused(function, message):
    with pytest.raises(PriceError, match=message):
        apply_function(function, random_bars(50))


def test_function_forms_and_names():
    prices = random_bars(50)
    assert list(apply_function(lambda p: p["close"], prices)) == ["close"]
    assert apply_function(lambda p: p[["open", "close"]].to_numpy(), prices).shape == (50, 2)
    assert apply_function(lambda p: np.arange(50), prices).to_numpy()[:, 0].tolist() == list(range(50))


def test_warm_up_is_counted_and_a_later_gap_refused():
    prices = random_bars(50)
    values, names, warm_up = combine(prices, None, lambda p: p["close"].rolling(5).mean().rename("m"))
    assert (warm_up, names, values.shape) == (4, ("m",), (50, 1))
    gap = pd.DataFrame({"feature_x": np.where(np.arange(50) == 30, np.nan, 1.0)}, index=prices.index)
    with pytest.raises(PriceError, match=r"'feature_x' is nan at bar 30 \(2020-01-31"):
        combine(prices, gap, None)
    with pytest.raises(PriceError, match="'feature_x' is nan at bar 0"):
        combine(prices, gap * np.nan, None)
    with pytest.raises(PriceError, match="one name"):
        combine(prices, pd.DataFrame({"feature_x": 1.0}, index=prices.index), lambda p: p["close"].rename("feature_x"))
