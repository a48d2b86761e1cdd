"""Forms of files: any case, separators, encodings, Chinese, Yahoo, several tickers, exchanges without header."""

import gzip
import io
import zipfile

import pandas as pd
import pytest

from rlbench.prices import load_prices

DAYS = ["2020-01-02", "2020-01-03"]
PLAIN = "Date,Open,High,Low,Close,Volume\n2020-01-02,1,2,0.5,1.5,10\n2020-01-03,1.5,2,1,1.2,0\n"


@pytest.mark.parametrize(
    "header", ["Date,Open,High,Low,Close,Volume", "date,OPEN,high,LOW,cLoSe,Vol", " Date , o,h,l,c,v"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_case_and_line_end(load, header, end, check):
    text = "\n".join([header, *PLAIN.splitlines()[1:], ""]).replace("\n", end)
    market = check(load(text), [1.5, 1.2], DAYS)
    assert market.prices.to_numpy().tolist() == [[1, 2, 0.5, 1.5, 10], [1.5, 2, 1, 1.2, 0]]
    assert market.name == "prices" and not market.simulated


def test_gzip_zip_and_parquet(load, tmp_path, check):
    check(load(gzip.compress(PLAIN.encode()), "p.csv.gz"), [1.5, 1.2], DAYS)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("p.csv", PLAIN)
    check(load(archive.getvalue(), "p.zip"), [1.5, 1.2], DAYS)
    frame = pd.read_csv(io.StringIO(PLAIN), parse_dates=["Date"])
    frame.to_parquet(tmp_path / "a.parquet")
    check(load_prices(tmp_path / "a.parquet"), [1.5, 1.2], DAYS)
    frame.set_index("Date").to_parquet(tmp_path / "b.parquet")
    check(load_prices(str(tmp_path / "b.parquet")), [1.5, 1.2], DAYS)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_byte_order_marks_and_separators(load, encoding, separator, check):
    text = PLAIN.replace(",", separator)
    check(load("\ufeff" + text if encoding == "utf-16-le" else text, encoding=encoding), [1.5, 1.2], DAYS)


@pytest.mark.parametrize("codec", ["gbk", "utf-8", "utf-8-sig", "gb18030"])
def test_chinese(load, codec, told, check):
    text = (
        "日期,股票代码,开盘,收盘,最高,最低,成交量,成交额\n"
        "2020-01-03,000001,1.5,1.2,2,1,20,3\n2020-01-02,000001,1,1.5,2,.5,10,3\n"
    )
    market = check(load(text, encoding=codec), [1.5, 1.2], DAYS)
    told(market, "newest first")
    assert market.prices["volume"].tolist() == [10, 20]
    brackets = (
        "日期,开盘价,最高价,最低价,收盘价,成交量(手)\n2020年1月2日,1,2,.5,1.5,1.2万\n2020年1月3日,1,2,.5,1.5,1.3亿\n"
    )
    assert load(brackets, encoding=codec).prices["volume"].tolist() == pytest.approx([1.2e4, 1.3e8])
    terminal = "000001 平安银行 日线 前复权\n" + brackets + "数据来源:通达信\n"
    told(check(load(terminal, encoding=codec), [1.5, 1.5], DAYS), "closing line")


def test_yahoo_header_rows(load, told, check):
    text = (
        "Price,Close,High,Low,Open,Volume\n"
        "Ticker,A,A,A,A,A\n"
        "Date,,,,,\n"
        "2020-01-02,1.5,2,0.5,1,10\n"
        "2020-01-03,1.2,2,1,1.5,20\n"
    )
    assert check(load(text), [1.5, 1.2], DAYS).prices["open"].tolist() == [1, 1.5]
    old = (
        ",Adj Close,Close,High,Low,Open,Volume\n"
        ",A,A,A,A,A,A\n"
        "Date,,,,,,\n"
        "2020-01-02,0.75,1.5,2,.5,1,10\n"
        "2020-01-03,1.2,1.2,2,1,1.1,20\n"
    )
    market = told(check(load(old), [0.75, 1.2], DAYS), "adjusted close / close")
    assert market.prices.iloc[0].tolist() == [0.5, 1.0, 0.25, 0.75, 20]  # factor 0.5; volume doubles


YAHOO_TWO = {
    "fields first": "Price,Close,Close,Open,Open\n"
    "Ticker,AAA,BBB,AAA,BBB\n"
    "Date,,,,\n"
    "2020-01-02,1.5,15,1,10\n"
    "2020-01-03,1.2,12,1,11\n",
    "tickers first": "Ticker,BBB,BBB,AAA,AAA\n"
    "Price,Open,Close,Open,Close\n"
    "Date,,,,\n"
    "2020-01-02,10,15,1,1.5\n"
    "2020-01-03,11,12,1,1.2\n",
    "long": "Ticker,Date,Close\nAAA,2020-01-02,1.5\nBBB,2020-01-02,15\nAAA,2020-01-03,1.2\nBBB,2020-01-03,12\n",
    "no level names": ",Close,Close\n,AAA,BBB\nDate,,\n2020-01-02,1.5,15\n2020-01-03,1.2,12\n",
}


@pytest.mark.parametrize("form", YAHOO_TWO)
def test_several_tickers_ask_for_one(load, form, refused, check):
    refused("2 tickers.*ticker=.*AAA, BBB", YAHOO_TWO[form])
    refused("no ticker 'CCC'.*AAA, BBB", YAHOO_TWO[form], ticker="CCC")
    assert check(load(YAHOO_TWO[form], ticker="AAA"), [1.5, 1.2], DAYS).name == "AAA"
    check(load(YAHOO_TWO[form], ticker="BBB"), [15, 12], DAYS)


def test_ticker_is_not_ignored_where_there_is_none(refused):
    refused("no column holds tickers", PLAIN, ticker="AAA")


KLINE = "1577836800000,7195.24,7196.25,7175.46,7177.02,511.8,1577840399999,3675857.9,7640,226.1,1624990.2,0"
NEXT = "1577840400000,7177.02,7230.0,7175.71,7216.27,883.05,1577843999999,6365952.9,9033,570.7,4114000.0,0"


def test_binance_klines_in_ms_µs_and_both(load, check):
    hours = ["2020-01-01 00:00", "2020-01-01 01:00"]
    check(load(f"{KLINE}\n{NEXT}\n"), [7177.02, 7216.27], hours)
    micro = NEXT.replace("1577840400000", "1577840400000000").replace("1577843999999", "1577843999999999")
    check(load(f"{KLINE.replace('800000,', '800000000,')}\n{micro}\n"), [7177.02, 7216.27], hours)
    check(load(f"{KLINE}\n{micro}\n"), [7177.02, 7216.27], hours)  # files of 2024 and 2025 joined
    named = "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore"
    check(load(f"{named}\n{KLINE}\n{NEXT}\n"), [7177.02, 7216.27], hours)


def test_adjusted_columns_beside_raw_ones(load, check):
    text = (
        "Date,Open,High,Low,Close,Volume,Split Ratio,Adj. Open,Adj. High,Adj. Low,Adj. Close,Adj. Volume\n"
        "2020-01-02,2,4,1,3,10,1,1,2,.5,1.5,20\n2020-01-03,1,2,.5,1.2,20,1,1,2,.5,1.2,20\n"
    )
    market = check(load(text), [1.5, 1.2], DAYS)
    assert market.prices.iloc[0].tolist() == [1, 2, 0.5, 1.5, 20]


def test_kraken_klines_hold_a_mean_price_before_the_volume(load, check):
    rows = "1577836800,10,12,9,11,10.5,700,4\n1577840400,11,12,9,10,10.6,800,5\n"
    market = check(load(rows), [11, 10], ["2020-01-01 00:00", "2020-01-01 01:00"])
    assert market.prices["volume"].tolist() == [700, 800]


def test_a_header_in_an_unknown_language_is_not_read_by_position(load, refused, check):
    rows = "2020-01-02,1.5,2,.5,1,7\n2020-01-03,1.2,2,1,1.5,8\n"  # close first, open last
    refused("Zeitpunkt.*columns=", "Zeitpunkt,Slut,Topp,Botten,Start,Antal\n" + rows)
    names = ["date", "close", "high", "low", "open", ""]
    market = check(load("Zeitpunkt,Slut,Topp,Botten,Start,Antal\n" + rows, columns=names), [1.5, 1.2], DAYS)
    assert market.prices["open"].tolist() == [1, 1.5]
    check(load("an export\n2020-01-02,1,2,.5,1.5\n2020-01-03,1.5,2,1,1.2\n"), [1.5, 1.2], DAYS)


@pytest.mark.parametrize(
    "header",
    [
        "Data,Otwarcie,Najwyzszy,Najnizszy,Zamkniecie,Wolumen", "날짜,시가,고가,저가,종가,거래량",
        "Data,Abertura,Máxima,Mínima,Último,Vol.", "Дата,Откр.,Макс.,Мин.,Цена,Объём",
    ],
)  # fmt: skip
def test_more_languages(load, header, check):
    market = check(load(f"{header}\n2020-01-02,1,2,.5,1.5,10\n2020-01-03,1.5,2,1,1.2,0\n"), [1.5, 1.2], DAYS)
    assert not market.notices


def test_the_previous_close_is_no_close(load, refused, check):
    rows = "\n2020-01-02,1,2,.5,9,1.5\n2020-01-03,1,2,.5,1.5,1.2\n"
    check(load("Date,Open,High,Low,Prev. Close,Close" + rows), [1.5, 1.2], DAYS)
    refused("no column for a close", "Date,Open,High,Low,Prev. Close,Foo" + rows)
    check(load("Date,X.Open,X.High,X.Low,Y.Close,Close" + rows), [1.5, 1.2], DAYS)  # the plain name is trusted more


def test_a_column_of_names_chooses_like_tickers(load, refused, check):
    text = "date,close,Name\n2020-01-02,1.5,AAA\n2020-01-03,1.2,AAA\n2020-01-02,7,BBB\n2020-01-03,8,BBB\n"
    refused("2 tickers.*AAA, BBB", text)
    check(load(text, ticker="BBB"), [7, 8], DAYS)


def test_a_row_that_lacks_the_only_ticker_is_kept(load, check):
    check(load("date,close,code\n2020-01-02,1.5,600519\n2020-01-03,1.2,\n"), [1.5, 1.2], DAYS)
