"""Times: handed case 19 whole, and its kind; day and month, zones, order."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.prices import load_prices
from rlbench.prices.errors import PriceError

DAYS = ["2020-01-02", "2020-01-03"]
PLAIN = "Date,Open,High,Low,Close,Volume\n2020-01-02,1,2,0.5,1.5,10\n2020-01-03,1.5,2,1,1.2,0\n"


def test_case_19a_one_date_twice(load, told, check):
    text = "Date,Close,Volume\n2020-01-02,1,2\n2020-01-03,1.1,3\n2020-01-03,1.1,4\n"
    market = told(check(load(text), [1, 1.1], DAYS), "1 repeated time(s)")
    assert market.prices["volume"].tolist() == [2, 4]
    newest_first = "Date,Close,Volume\n2020-01-03,1.1,4\n2020-01-03,1.1,3\n2020-01-02,1,2\n"
    assert told(load(newest_first), "repeated").prices["volume"].tolist() == [2, 4]


def test_case_19b_hours_with_dates_only(refused):
    rows = "".join(f"2020-01-0{1 + i // 24},{5 + i % 3}\n" for i in range(96))
    message = refused("time of day is missing", "Date,Close\n" + rows)
    assert "line 3" in message and "2020-01-01" in message


def test_case_19c_repeated_autumn_hour(load, refused, told, check):
    text = (
        "Time,Close\n"
        "2021-11-07 00:30:00-04:00,1\n"
        "2021-11-07 01:30:00-04:00,2\n"
        "2021-11-07 01:30:00-05:00,3\n"
        "2021-11-07 02:30:00-05:00,4\n"
    )
    utc = [f"2021-11-07 0{h}:30" for h in (4, 5, 6, 7)]
    check(load(text), [1, 2, 3, 4], utc)
    bare = text.replace("-04:00", "").replace("-05:00", "")
    check(load(bare, timezone="America/New_York"), [1, 2, 3, 4], utc)
    lines = bare.splitlines()
    turned = "\n".join([lines[0], *lines[:0:-1]]) + "\n"
    check(load(turned, timezone="America/New_York"), [1, 2, 3, 4], utc)
    missing = "\n".join(lines[:2] + lines[3:]) + "\n"
    refused("line 3: 2021-11-07 01:30:00 is no single time.*offsets", missing, timezone="America/New_York")
    told(load(bare), "clock change")


def test_case_19d_mixed_offsets(load, check):
    text = "Time,Close\n2021-03-14T01:30:00-05:00,1\n2021-03-14T03:30:00-04:00,2\n"
    check(load(text), [1, 2], ["2021-03-14 06:30", "2021-03-14 07:30"])
    zones = [timezone(timedelta(hours=h)) for h in (-5, -4)]
    times = [datetime(2021, 3, 14, 1, 30, tzinfo=zones[0]), datetime(2021, 3, 14, 3, 30, tzinfo=zones[1])]
    frame = pd.DataFrame({"Time": times, "Close": [1.0, 2.0]})
    check(load_prices(frame), [1, 2], ["2021-03-14 06:30", "2021-03-14 07:30"])


def test_time_zones(load, refused, told, check):
    text = "Datetime,Close\n2020-07-01 09:30,1\n2020-07-01 09:31,2\n"
    told(check(load(text), [1, 2], ["2020-07-01 09:30", "2020-07-01 09:31"]), "count as UTC")
    market = load(text, timezone="America/New_York")
    check(market, [1, 2], ["2020-07-01 13:30", "2020-07-01 13:31"])
    assert not any("UTC" in notice for notice in market.notices)
    told(load(text.replace(",1", "Z,1").replace(",2", "Z,2"), timezone="Asia/Tokyo"), "was not needed")
    refused("unknown", text, timezone="New York")
    refused("carry an offset", "Time,Close\n2020-01-02 09:30:00Z,1\n2020-01-02 09:31:00,1\n")
    refused("carry an offset", "Time,Close\n2020-01-02 09:30:00,1\n2020-01-02 09:31:00+01:00,1\n")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2020-01-30", "2020-01-31"), ("2020/1/30", "2020/1/31"), ("20200130", "20200131"), ("2020.01.30", "2020.01.31"),
        ("30/01/2020", "31/01/2020"), ("01/30/2020", "01/31/2020"), ("1/30/20", "1/31/20"), ("30.1.2020", "31.1.2020"),
        ("30-Jan-2020", "31-Jan-2020"), ("January 30 2020", "January 31 2020"), ("1580342400", "1580428800"),
        ("1580342400000", "1580428800000"), ("1580342400000000", "1580428800000000"), ("43860", "43861"),
        ("1580342400000000000", "1580428800000000000"), ("2020-01-30T00:00:00.000Z", "2020-01-31T00:00:00.000Z"),
        ("2020-01-30 00:00:00 UTC", "2020-01-31 00:00:00 UTC"), ("30/01/2020 12:00 AM", "31/01/2020 12:00 AM"),
        ("202001300000", "202001310000"), ("2020-01-30 02:00:00+0200", "2020-01-31 02:00:00+0200"),
        ("2020-01-30 00:00:00", "2020-01-31 00:00:00.000"), ("1580342400.0", "1580428800.0"),
    ],
)  # fmt: skip
def test_kinds_of_times(load, first, second, check):
    quoted = [f'"{cell}"' for cell in (first, second)]
    check(load(f"Date,Close\n{quoted[0]},1\n{quoted[1]},1.1\n"), [1, 1.1], ["2020-01-30", "2020-01-31"])


def test_day_and_month(load, refused, told, check):
    unclear = "Date,Close\n01/02/2020,1\n02/02/2020,1.1\n03/02/2020,1\n"
    refused("line 2: '01/02/2020'.*dayfirst=", unclear)
    check(load(unclear, dayfirst=True), [1, 1.1, 1], ["2020-02-01", "2020-02-02", "2020-02-03"])
    check(load(unclear, dayfirst=False), [1, 1.1, 1], ["2020-01-02", "2020-02-02", "2020-03-02"])
    ordered = "Date,Close\n11/01/2020,1\n12/01/2020,1.1\n01/02/2020,1\n"  # in order with the day first only
    told(check(load(ordered), [1, 1.1, 1], ["2020-01-11", "2020-01-12", "2020-02-01"]), "day first")
    refused("line 2.*day first.*line 3.*month", "Date,Close\n13/01/2020,1\n01/14/2020,1\n")
    refused("contradicts dayfirst=True", "Date,Close\n01/13/2020,1\n01/14/2020,1\n", dayfirst=True)
    refused("out of order", "Date,Close\n13/01/2020,1\n02/01/2020,1\n14/01/2020,1\n")
    told(load(PLAIN, dayfirst=True), "not needed")


@pytest.mark.parametrize("cell", ["yesterday", "2020-13-01", "2020-02-30", "09:30", "7", "31/02/2020"])
def test_what_is_no_time_is_refused(cell, refused):
    refused("line 3.*is not a time", f"Date,Close\n2020-01-02,1\n{cell},1\n".replace(
        "2020-01-02", {"7": "1577923200", "31/02/2020": "30/01/2020"}.get(cell, "2020-01-02")))  # fmt: skip


def test_order(load, told, check):
    rows = PLAIN.splitlines()
    told(check(load("\n".join([rows[0], rows[2], rows[1]])), [1.5, 1.2], DAYS), "newest first")
    text = "Date,Close\n2020-01-03,2\n2020-01-02,1.9\n2020-01-06,2.1\n"
    told(check(load(text), [1.9, 2, 2.1], ["2020-01-02", "2020-01-03", "2020-01-06"]), "out of order, first line 3")
    told(check(load(PLAIN + "\n".join(rows[1:]) + "\n"), [1.5, 1.2], DAYS), "2 repeated")


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 10**6), min_size=2, max_size=30, unique=True),
    st.sampled_from(["s", "ms", "us", "iso", "offset"]),
)
def test_any_order_comes_out_strictly_increasing(tmp_path_factory, minutes, form):
    base, price = datetime(2021, 1, 1, tzinfo=UTC), 10**8  # no jump between two of these is like a split
    times = [base + timedelta(minutes=m) for m in minutes]
    write = {
        "s": lambda t: str(int(t.timestamp())), "ms": lambda t: str(int(t.timestamp()) * 10**3),
        "us": lambda t: str(int(t.timestamp()) * 10**6), "iso": lambda t: t.strftime("%Y-%m-%d %H:%M"),
        "offset": lambda t: t.astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat(),
    }[form]  # fmt: skip
    path = tmp_path_factory.mktemp("t") / "p.csv"
    path.write_text("time,close\n" + "".join(f"{write(t)},{price + m}\n" for t, m in zip(times, minutes, strict=True)))
    market = load_prices(path)
    assert market.close.tolist() == [price + m for m in sorted(minutes)]
    assert [t.to_pydatetime() for t in market.time] == sorted(times)


def test_years_beyond_nanoseconds_are_refused_not_wrapped(refused):
    refused("line 3: '2999-01-01.*years 1678 to 2261", "Date,Close\n2020-01-02,1\n2999-01-01,1\n")
    refused("line 2: '0001-01-01.*years", "Date,Close\n0001-01-01,1\n2020-01-02,1\n")
    frame = pd.DataFrame({"close": [1.0, 2.0]}, index=pd.DatetimeIndex(np.array(["2020-01-02", "2999-01-01"], "M8[s]")))
    with pytest.raises(PriceError, match=r"row 1: '2999-01-01.*years"):
        load_prices(frame)


def test_an_hour_alone_is_an_hour(load, check):
    check(load("Date,Close\n2020-01-02 01,1\n2020-01-02 10,1.1\n"), [1, 1.1], ["2020-01-02 01:00", "2020-01-02 10:00"])
