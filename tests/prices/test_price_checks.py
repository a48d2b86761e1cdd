"""Values: handed case 21 whole, and its kind; impossible bars, splits, holes."""

import numpy as np
import pandas as pd
import pytest

from rlbench.market import DATA, real
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


@pytest.mark.parametrize("as_text", [False, True])
def test_case_21(load, as_text, told):
    def run(frame):
        return load(frame.to_csv()) if as_text else load_prices(frame)

    frame = fifty(Volume=(30, 0.0))
    frame.iloc[20] = np.nan
    date = frame.index[20]
    market = told(
        run(frame), f"dropped 1 row(s) without prices, first {'line 22' if as_text else 'row 20'} ({date:%Y-%m-%d})"
    )
    assert len(market) == 49 and date.tz_localize("UTC") not in market.time
    assert np.isfinite(market.features).all() and market.features.dtype == np.float32
    assert market.prices["volume"].iloc[29] == 0
    for column, row, value in (("Close", 40, 0.0), ("Low", 45, -1.0), ("Open", 0, 0.0), ("High", 49, np.inf)):
        day = frame.index[row]
        with pytest.raises(PriceError, match=f"{day:%Y-%m-%d}.*{column.lower()} is {value:g}; a price is above zero"):
            run(fifty(**{column: (row, value)}))
    with pytest.raises(PriceError, match="volume is -5"):
        run(fifty(Volume=(3, -5.0)))
    with pytest.raises(PriceError, match=f"{frame.index[7]:%Y-%m-%d}.*low is missing"):
        run(fifty(Low=(7, np.nan)))
    told(run(fifty(Volume=(3, np.nan))), "1 missing volume(s)")


def test_impossible_bars(refused, told):
    day = fifty().index[9]
    with pytest.raises(PriceError, match=f"{day:%Y-%m-%d}.*breaks low <= open"):
        load_prices(fifty(High=(9, 90.0)))
    close = fifty()["Close"].iloc[9]
    market = told(load_prices(fifty(High=(9, close - 0.01))), "moved by a rounding")
    assert market.prices["high"].iloc[9] == close
    refused("order of the columns", "2020-01-02,1.5,1,2,1.2\n2020-01-03,1.5,1,2,1.2\n")  # open, low, high


def test_split_not_adjusted_is_told_and_the_offered_remedy_works(load, refused, told):
    text = "Date,Open,Close\n2020-01-02,100,101\n2020-01-03,50.4,51\n2020-01-06,50.4,51\n"
    told(load(text), "2020-01-03 opens at 0.499 of the close before, like a 2 for 1 split")
    fixed = load(text, splits={"2020-01-03": 2})
    assert fixed.close.tolist() == [50.5, 51, 51] and not any("split" in n for n in fixed.notices)
    reverse = "Date,Open,Close\n2020-01-02,10,10.1\n2020-01-03,50.4,51\n2020-01-06,50.4,51\n"
    told(load(reverse), 'splits={"2020-01-03": 1/5}')
    assert load(reverse, splits={"2020-01-03": 1 / 5}).close.tolist() == pytest.approx([50.5, 51, 51])
    refused("a day inside", text, splits={"2019-01-03": 2})
    refused("no date", text, splits={"soon": 2})


def test_raw_apple_shows_its_splits_and_its_crash_is_none(tmp_path):
    path = DATA / "stocks.csv.gz"
    raw = pd.read_csv(path)
    bare = load_prices(raw[raw["Ticker"] == "AAPL"].drop(columns=["Adj Close"]))
    days = [n[:10] for n in bare.notices if "split" in n]
    assert days == ["2000-06-21", "2005-02-28"]
    market = load_prices(path, ticker="AAPL")
    assert not any("like a" in n for n in market.notices)
    np.testing.assert_allclose(market.prices, real("AAPL").prices, rtol=1e-9)
    with pytest.raises(PriceError, match="AAPL, FB, GOOG, IBM, MSFT"):
        load_prices(path)


def test_adjusted_close_must_be_usable():
    frame = fifty().assign(**{"Adj Close": 50.0})
    assert load_prices(frame).close.tolist() == pytest.approx([50.0] * 50)
    frame.iloc[3, -1] = 0.0
    with pytest.raises(PriceError, match="adjusted close is 0"):
        load_prices(frame)


def test_holes_are_counted(told):
    days = pd.bdate_range("2020-01-01", periods=100)
    frame = pd.DataFrame({"Date": days.delete(range(40, 60)), "Close": 5.0})
    told(load_prices(frame), "1 hole(s)")
    assert not any("hole" in n for n in load_prices(pd.DataFrame({"Date": days, "Close": 5.0})).notices)
    hours = pd.date_range("2020-01-01", periods=500, freq="h", tz="UTC")
    told(load_prices(pd.DataFrame({"Date": hours.delete([100, 300]), "Close": 5.0})), "2 hole(s)")


def test_lunch_breaks_and_nights_are_no_holes(told):
    clock = [pd.Timedelta(minutes=m) for m in [*range(0, 120), *range(210, 330)]]
    times = pd.DatetimeIndex([d + c for d in pd.bdate_range("2021-03-01 01:30", periods=15) for c in clock])
    assert not any("hole" in n for n in load_prices(pd.DataFrame({"Time": times, "Close": 5.0})).notices)
    told(load_prices(pd.DataFrame({"Time": times.delete(range(1000, 1010)), "Close": 5.0})), "1 hole(s)")


def test_a_first_row_without_prices_is_no_header(load, told):
    market = load("Date,Open,Close\n2020-01-02,,\n2020-01-03,1,1\n2020-01-06,1,1.1\n")
    assert len(told(market, "dropped 1 row(s) without prices, first line 2 (2020-01-02)")) == 2


def test_several_instruments_in_one_file_are_refused(refused):
    bars = "".join(f"2020-01-02 09:{m},{p}\n" for m in range(30, 40) for p in (1, 700))
    refused("line 3: 2020-01-02 09:30.*several instruments.*ticker", "Time,Close\n" + bars)
