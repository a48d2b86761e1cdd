"""Files of terminals and vendors, named columns, and files that are none."""

import gzip
import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from rlbench.prices import load_prices
from rlbench.prices.errors import PriceError

DAYS = ["2020-01-02", "2020-01-03"]
PLAIN = "Date,Open,High,Low,Close,Volume\n2020-01-02,1,2,0.5,1.5,10\n2020-01-03,1.5,2,1,1.2,0\n"


def fifty(**changes):
    """50 good bars; `changes` maps column to (row, value)."""
    close = 100 + np.sin(np.arange(50.0))
    frame = pd.DataFrame({"Open": close, "High": close + 1, "Low": close - 1, "Close": close, "Volume": 5.0},
                         index=pd.bdate_range("2020-01-01", periods=50, name="Date"))  # fmt: skip
    for column, (row, value) in changes.items():
        frame.iloc[row, frame.columns.get_loc(column)] = value
    return frame


METATRADER = {
    "new": "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n"
    "2020.01.02\t00:00:00\t1.12\t1.13\t1.11\t1.125\t100\t0\t5\n"
    "2020.01.02\t01:00:00\t1.125\t1.13\t1.11\t1.12\t150\t0\t5\n",
    "old": "2020.01.02,00:00,1.12,1.13,1.11,1.125,100\n2020.01.02,01:00,1.125,1.13,1.11,1.12,150\n",
    "no header, spread": "2020.01.02\t00:00:00\t1.12\t1.13\t1.11\t1.125\t100\t0\t5\n"
    "2020.01.02\t01:00:00\t1.125\t1.13\t1.11\t1.12\t150\t0\t5\n",
    "finam": "<TICKER>;<PER>;<DATE>;<TIME>;<OPEN>;<HIGH>;<LOW>;<CLOSE>;<VOL>\n"
    "X;60;20200102;000000;1.12;1.13;1.11;1.125;100\n"
    "X;60;20200102;010000;1.125;1.13;1.11;1.12;150\n",
    "histdata": "20200102 000000;1.12;1.13;1.11;1.125;100\n20200102 010000;1.125;1.13;1.11;1.12;150\n",
}


@pytest.mark.parametrize("form", METATRADER)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_metatrader_and_kin(load, form, encoding, told, check):
    market = load(METATRADER[form], encoding=encoding)
    check(market, [1.125, 1.12], ["2020-01-02 00:00", "2020-01-02 01:00"])
    assert market.prices["volume"].tolist() == [100, 150]
    told(market, "count as UTC")


def test_metatrader_daily(load, check):
    text = (
        "<DATE>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n"
        "2020.01.02\t1\t2\t.5\t1.5\t9\t0\t1\n"
        "2020.01.03\t1\t2\t.5\t1.2\t8\t0\t1\n"
    )
    assert check(load(text), [1.5, 1.2], DAYS).prices["volume"].tolist() == [9, 8]


@pytest.mark.parametrize(
    "text",
    [
        "Date,Close/Last,Volume,Open,High,Low\n01/31/2020,$1.2,100,$1,$2,$0.5\n01/30/2020,$1.5,100,$1,$2,$0.5\n",
        '"Date","Price","Open","High","Low","Vol.","Change %"\n'
        '"Jan 31, 2020","1.2","1","2",".5","1K","-1%"\n'
        '"Jan 30, 2020","1.5","1","2",".5","2M","2%"\n',
        "timestamp,1. open,2. high,3. low,4. close,5. volume\n2020-01-31,1,2,.5,1.2,3\n2020-01-30,1,2,.5,1.5,3\n",
        "https://www.example.com\n"
        "unix,date,symbol,open,high,low,close,Volume BTC,Volume USD\n"
        "1580428800,2020-01-31,B,1,2,.5,1.2,3,4\n"
        "1580342400,2020-01-30,B,1,2,.5,1.5,3,4\n",
        '"","X.Open","X.High","X.Low","X.Close","X.Volume","X.Adjusted"\n'.replace('""', '"Date"')
        + "30-Jan-2020,1,2,.5,1.5,3,1.5\n31-Jan-2020,1,2,.5,1.2,3,1.2\n",
        "Datum;Erster;Hoch;Tief;Schlusskurs;Stücke\n"
        "31.01.2020;1,0;2,0;0,5;1,2;1.000\n"
        "30.01.2020;1,0;2,0;0,5;1,5;2.000\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_vendors(load, text, encoding, check):
    check(load(text, encoding=encoding), [1.5, 1.2], ["2020-01-30", "2020-01-31"])


def test_columns_option_names_a_file_without_header(load, refused, check):
    names = ["date", "close", "high", "low", "open"]
    market = check(load("2020-01-02,1.5,2,.5,1\n2020-01-03,1.2,2,1,1.5\n", columns=names), [1.5, 1.2], DAYS)
    assert market.prices["open"].tolist() == [1, 1.5]
    refused("no header.*columns=", "a,b\nx,y\n")
    refused("no column for a close.*'Date', 'Open', 'Amount'", "Date,Open,Amount\n2020-01-02,1,2\n2020-01-03,1,2\n")


def test_close_alone_makes_bars_with_a_notice(load, told, check):
    market = told(check(load("Date,Close\n2020-01-02,1.5\n2020-01-03,1.2\n"), [1.5, 1.2], DAYS), "open, high, low")
    assert market.prices["high"].tolist() == [1.5, 1.2]
    told(market, "no column for volume")


def test_two_columns_that_mean_the_same_must_agree(refused):
    refused("both mean close", "Date,Close,close\n2020-01-02,1,2\n2020-01-03,1,2\n")


def test_headers_repeated_by_joining_files(load, told, check):
    told(
        check(load(PLAIN.replace("2020-01-03", PLAIN.splitlines()[0] + "\n2020-01-03")), [1.5, 1.2], DAYS),
        "repeated header",
    )


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        (b"", "empty"), (b"\n\n", "empty"), (b"Date,Close\n", "at least"), (b"Date,Close\n2020-01-02,1\n", "at least 2"),
        (bytes(range(256)), "not a text file"), (gzip.compress(PLAIN.encode())[:-9], "cannot read"),
        (b"PAR1 broken", "cannot read"), (b"<html>\n<body>\n", "no header"), (b"PK\x03\x04broken", "cannot read"),
    ],
)  # fmt: skip
def test_files_that_are_none(content, pattern, refused):
    refused(pattern, content)


def test_a_path_that_is_none(tmp_path):
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(PriceError, match="no file|is a folder"):
            load_prices(path)


def test_encoding_option(load, refused, check):
    check(load(PLAIN, encoding="utf-16-le", codec="utf-16-le"), [1.5, 1.2], DAYS)
    refused("encoding='klingon'", PLAIN, codec="klingon")


def test_notices_are_told_once(load, capsys):
    text = "Date,Close\n2020-01-03,1\n2020-01-02,1\n"
    load(text, "told_once.csv")
    load(text, "told_once.csv")
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("told_once.csv: rows were newest first; turned round") == 1


def test_parquet_without_pyarrow_is_one_sentence(tmp_path, monkeypatch):
    fifty().to_parquet(tmp_path / "p.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PriceError, match="pip install pyarrow"):
        load_prices(tmp_path / "p.parquet")


def _zipped(**members: str) -> bytes:
    with zipfile.ZipFile(memory := io.BytesIO(), "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return memory.getvalue()


def test_zips_that_hold_more_or_less_than_one_readable_file(load, refused, check):
    check(load(_zipped(**{"p.csv": PLAIN, "__MACOSX/._p.csv": "x"})), [1.5, 1.2], DAYS)
    refused("holds 2 files", _zipped(**{"a.csv": PLAIN, "b.csv": PLAIN}))
    refused("holds 0 files", _zipped())
    refused("spreadsheet: save it as CSV", _zipped(**{"[Content_Types].xml": "<x/>", "xl/workbook.xml": "<x/>"}))
    data = bytearray(_zipped(**{"p.csv": PLAIN}))
    entry = data.find(b"PK\x01\x02")
    locked, packed = data.copy(), data.copy()
    locked[6], locked[entry + 8] = 1, 1  # flag: needs a password
    refused("cannot read.*encrypted", bytes(locked))
    packed[8], packed[entry + 10] = 99, 99  # no known way of packing
    refused("cannot read.*compression", bytes(packed))
