"""load_prices on DataFrames, with feature columns and options."""

import numpy as np
import pandas as pd
import pytest

from rlbench.prices import load_prices
from rlbench.prices.errors import PriceError


def fifty(**changes):
    """50 good bars; `changes` maps column to (row, value)."""
    close = 100 + np.sin(np.arange(50.0))
    frame = pd.DataFrame({"Open": close, "High": close + 1, "Low": close - 1, "Close": close, "Volume": 5.0},
                         index=pd.bdate_range("2020-01-01", periods=50, name="Date"))  # fmt: skip
    for column, (row, value) in changes.items():
        frame.iloc[row, frame.columns.get_loc(column)] = value
    return frame


def test_dataframe_forms_and_the_source_is_left_alone():
    frame = fifty()
    copy = frame.copy(deep=True)
    expected = load_prices(frame)
    pd.testing.assert_frame_equal(frame, copy)
    forms = [
        frame.reset_index(),
        frame.iloc[::-1],
        frame.rename_axis(None),
        frame.tz_localize("UTC"),
        frame.set_axis(frame.index.strftime("%Y-%m-%d"), axis=0),
        frame.set_axis(frame.index.date, axis=0),
        frame.astype(str),
        frame.astype(object),
        frame.astype("float32").astype("Float64"),
        frame.set_axis(frame.index.to_period("D"), axis=0),
        frame.assign(Ticker="X"),
        pd.concat({"X": frame}, names=["Ticker", "Date"]),
        pd.concat({"X": frame}, axis=1, names=["Ticker", "Price"]),
        pd.concat({"X": frame}, axis=1, names=["Ticker", "Price"]).swaplevel(axis=1),
    ]
    for i, form in enumerate(forms):
        market = load_prices(form)
        np.testing.assert_allclose(market.prices, expected.prices, rtol=1e-6, err_msg=str(i))
        assert market.time.equals(expected.time), i


def test_dataframes_without_time_or_rows_are_refused():
    with pytest.raises(PriceError, match="no column for a date or time"):
        load_prices(fifty().reset_index(drop=True))
    with pytest.raises(PriceError, match="at least 2"):
        load_prices(fifty().iloc[:0])
    with pytest.raises(PriceError, match="not list"):
        load_prices([1, 2, 3])
    with pytest.raises(PriceError, match="encoding="):
        load_prices(fifty(), encoding="gbk")


def test_feature_columns_pass_through(load, refused, told):
    rows = [f"2020-01-{d:02d},{10 + d},{d * 0.5}" for d in range(1, 20)]
    market = load("Date,Close,Feature_Mood\n" + "\n".join(rows))
    assert market.feature_names[-1] == "feature_mood" and len(market.feature_names) == 11
    assert market.raw_features[:, -1].tolist() == [d * 0.5 for d in range(1, 20)]
    warm = told(
        load("Date,Close,feature_mood\n" + "\n".join(rows).replace(",0.5\n", ",\n", 1)), "dropped the first 1 bars"
    )
    assert len(warm) == 18
    refused("'feature_mood' is nan at bar 9", "Date,Close,feature_mood\n" + "\n".join(rows).replace(",5.0\n", ",\n"))
    own = load("Date,Close\n" + "\n".join(r.rsplit(",", 1)[0] for r in rows), features=lambda p: p["close"].rename("x"))
    assert own.feature_names == ("x",)


def test_options_reach_the_market():
    frame = fifty()
    first = load_prices(frame, train=0.5, validation=0.25, name="mine", bars_per_year=99.0)
    assert (first.name, first.bars_per_year, len(first.split().train)) == ("mine", 99.0, 25)
    again = load_prices(frame.iloc[:30], scaler=first.scaler)
    np.testing.assert_array_equal(again.features, first.features[:30])


def test_future_rows_in_a_file_leave_earlier_observations_bit_identical(load):
    frame = fifty()
    market = load(frame.to_csv())
    changed = frame.copy()
    changed.iloc[30:, :4] *= 1.1
    again = load(changed.to_csv(), scaler=market.scaler)
    assert again.features[:30].tobytes() == market.features[:30].tobytes()


def test_reading_a_large_file_is_announced(load, monkeypatch, capsys):
    monkeypatch.setattr("rlbench.prices.load.LARGE", 10)
    load(fifty().to_csv(), "large.csv")
    assert "large.csv: reading" in capsys.readouterr().err
