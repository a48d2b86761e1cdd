"""Which cells tell the time: two columns, an index without a name, bare digits, a 12-hour dial."""

import datetime

import numpy as np
import pandas as pd
import pytest

from rlbench.prices import load_prices
from rlbench.prices.errors import PriceError

HOURS = ["2020-01-02 09:30", "2020-01-02 10:00"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("09:30", "10:00"), ("9:30 AM", "10:00 AM"), ("09:30:00", "10:00:00.000"), ("0930", "1000"), ("930", "1000"),
        ("093000", "100000"), ("93000", "100000"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["Time", "Timestamp"])
def test_a_time_of_day_in_a_column_of_its_own(load, name, first, second, check):
    check(load(f"Date,{name},Close\n2020-01-02,{first},1\n2020-01-02,{second},1.1\n"), [1, 1.1], HOURS)
    frame = pd.DataFrame({"Date": ["2020-01-02"] * 2, name: [first, second], "Close": [1, 1.1]})
    check(load_prices(frame), [1, 1.1], HOURS)


def test_bare_hours_and_a_column_without_any(load, refused, check):
    check(load("Date,Hour,Close\n2020-01-02,0,1\n2020-01-02,23,1.1\n"), [1, 1.1], ["2020-01-02", "2020-01-02 23:00"])
    refused("line 3.*24:00' is not a time", "Date,Hour,Close\n2020-01-02,1,1\n2020-01-02,24,1.1\n")
    check(load("Date,Time,Close\n2020-01-02,,1\n2020-01-03,,1.1\n"), [1, 1.1], ["2020-01-02", "2020-01-03"])
    clock = [datetime.time(9, 30), datetime.time(10)]
    for cells in (clock, pd.to_timedelta(["9:30:00", "10:00:00"])):
        frame = pd.DataFrame({"Date": [datetime.date(2020, 1, 2)] * 2, "Time": cells, "Close": [1, 1.1]})
        check(load_prices(frame), [1, 1.1], HOURS)


def test_an_index_without_a_name_comes_back(load, tmp_path, refused, check):
    days = ["2020-01-02", "2020-01-03"]
    frame = pd.DataFrame({"Open": [1, 1], "Close": [1.5, 1.2]}, index=pd.DatetimeIndex(days))
    frame.to_csv(tmp_path / "saved.csv")
    check(load_prices(tmp_path / "saved.csv"), [1.5, 1.2], days)
    check(load_prices(pd.read_csv(tmp_path / "saved.csv")), [1.5, 1.2], days)
    check(load_prices(frame.reset_index()), [1.5, 1.2], days)
    refused("no column for a date or time", ",Open,Close\n0,1,1.5\n1,1,1.2\n")


@pytest.mark.parametrize("column", ["hour", "day", "date", "time", "t"])
def test_an_index_of_times_is_the_time_whatever_stands_beside_it(column, check):
    index = pd.DatetimeIndex(HOURS)
    for beside in ([0, 1], ["Monday", "Monday"], index.date):
        check(load_prices(pd.DataFrame({"close": [1.0, 2.0], column: beside}, index=index)), [1, 2], HOURS)


def test_an_index_of_days_is_joined_with_the_time_of_day(check):
    index = pd.DatetimeIndex(["2020-01-02"] * 2, name="Date")
    check(load_prices(pd.DataFrame({"Time": ["09:30", "10:00"], "Close": [1.0, 2.0]}, index=index)), [1, 2], HOURS)


@pytest.mark.parametrize("newest_first", [False, True])
def test_lost_am_and_pm_are_refused_not_sorted(load, refused, newest_first, check):
    session = pd.date_range("2020-01-02 09:30", "2020-01-02 15:30", freq="30min")
    rows = [f"{t:%Y-%m-%d %I:%M},{i + 1}\n" for i, t in enumerate(session)]
    refused("AM and PM", "Time,Close\n" + "".join(rows[::-1] if newest_first else rows))
    in_order = "Time,Close\n2020-01-02 01:00,1\n2020-01-02 12:00,2\n"
    check(load(in_order), [1, 2], ["2020-01-02 01:00", "2020-01-02 12:00"])


def test_a_mixture_of_epochs_and_text_names_the_odd_row():
    frame = pd.DataFrame({"time": ["1577923200", "x"], "close": [1.0, 2.0], "feature_x": np.zeros(2)})
    with pytest.raises(PriceError, match="row 1: 'x' is not a time"):
        load_prices(frame)
