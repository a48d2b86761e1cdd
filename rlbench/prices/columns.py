"""What a column of a price file means, from its name in any of the spellings that exchanges and vendors use."""

import re
from collections.abc import Sequence

# Spellings of each field, squashed by `_squash`, most trusted first. "" marks columns known and not needed.
_SPELLINGS = {
    "epoch": "timestamp unix unixtime unixtimestamp epoch opentime klineopentime startat",
    "datetime": "datetime dt gmttime localtime dateandtime tradetime candlebegintime t 日期时间 交易日期时间",
    "date": "date datum fecha data day tradedate tradingdate tradingday 日期 交易日期 交易日 日付 날짜 дата",
    "time": "time timeofday hour zeit hora 时间 交易时间 時間 время",
    "open": "open openprice opening o erster eröffnung eröffnungskurs ouverture ouv apertura abertura otwarcie откр 시가 "
    "开盘 开盘价 今开 開盤 開盤價 始値",
    "high": "high highprice max h hoch tageshoch plushaut máximo maximo máxima massimo najwyzszy najwyższy макс 고가 "
    "最高 最高价 最高價 高値",
    "low": "low lowprice min l tief tagestief plusbas mínimo minimo mínima najnizszy najniższy мин 저가 最低 最低价 最低價 安値",
    "close": "close closeprice closelast closing last c schluss schlusskurs clôture cloture cierre 收盘 收盘价 收盤 "
    "收盤價 終値 종가 price dernier último ultimo fechamento zamkniecie zamknięcie цена latest",
    "adjusted": "adjclose adjustedclose adjcloseprice closeadj adjustedclosingprice adjustedprice 复权收盘价 复权价 "
    "调整后收盘价 前复权收盘价 後復權收盤價",
    "volume": "volume vol v volumen totalvolume 成交量 交易量 出来高 거래량 wolumen объём "
    "tickvol tickvolume realvolume basevolume stücke",
    "ticker": "ticker symbol tic instrument secid tscode code 代码 股票代码 证券代码 合约代码 合约 銘柄コード "
    "name stock coin pair asset",
    "": "closetime per period spread amount turnover quotevolume quoteassetvolume change 成交额 涨跌幅 换手率",
}
_FIELD = {name: (field, rank) for field, text in _SPELLINGS.items() for rank, name in enumerate(text.split())}
PRICES = ("open", "high", "low", "close")
TIMES = ("epoch", "datetime", "date", "time")
BINANCE = ("epoch", *PRICES, "volume", "", "", "", "", "", "")


def _squash(name: str) -> str:
    """Lower case, without brackets and what stands in them, a leading "1. ", quotes, blanks, dots and the like."""
    name = re.sub(r"[(（\[][^)）\]]*[)）\]]", "", name.strip().strip("<>\"'").lower())
    return re.sub(r"[\s_\-./%]+", "", re.sub(r"^\d+\w?\.\s*", "", name))


def meaning(name: str) -> tuple[str, int] | None:
    """(field, rank) of a column name, rank 0 for the spelling to trust most; None for an unknown name.

    Understands a ticker in front ("AAPL.Open") and a currency behind volume ("Volume BTC").
    """
    if name.strip().lower().startswith("feature_"):
        return name.strip().lower(), 0
    squashed = _squash(name)
    if squashed in _FIELD:
        return _FIELD[squashed]
    if squashed.startswith("adj"):  # adjusted open, high, low, volume: follow from the adjusted close
        return None
    last = _squash(re.split(r"[.\s]", name.strip())[-1])
    if (
        "." in name
        and last in _FIELD
        and last not in ("t", "o", "h", "l", "c", "v")
        and not squashed.startswith("prev")
    ):
        return _FIELD[last][0], _FIELD[last][1] + 100  # a plain "close" is to be trusted more
    return ("volume", 50) if squashed.startswith("volume") else None


def count_known(cells: Sequence[str]) -> int:
    """How many different price and time fields a row of cells names: two or more make it a header."""
    found = {known[0] for cell in cells if (known := meaning(cell)) is not None}
    return len(found & {*PRICES, *TIMES, "adjusted", "volume"})


def name_columns(header: Sequence[Sequence[str]]) -> tuple[list[tuple[str, int] | None], list[str] | None]:
    """Meaning of each column from one or several header rows, and the ticker of each column where a row names them.

    Several rows are Yahoo's form: one row names the fields, one the tickers, and one only the time column.
    """
    fields = max(header, key=count_known)
    width = max(len(row) for row in header)
    rows = [[*row, *[""] * (width - len(row))] for row in header]
    names = [meaning(cell) for cell in [*fields, *[""] * (width - len(fields))]]
    if len(rows) == 1:
        return names, None
    for column in range(width):
        times = [known for row in rows if (known := meaning(row[column])) is not None and known[0] in TIMES]
        if times:
            names[column] = times[0]
        elif column == 0 and _squash(rows[rows.index([*fields, *[""] * (width - len(fields))])][0]) == "price":
            names[column] = ("datetime", 0)  # yfinance heads the index column with the name of the level
    prices = [c for c, known in enumerate(names) if known is not None and known[0] in (*PRICES, "adjusted", "volume")]
    for row in rows:
        if row[: len(fields)] != list(fields) and prices and all(row[c].strip() for c in prices):
            return names, [cell.strip() for cell in row]
    return names, None


def headerless(first: Sequence[str]) -> tuple[str, ...] | None:
    """Columns of a file without header, from its first row: Binance, Kraken, MetaTrader, or date[, time], o, h, l, c[, v].

    None when the row fits none of them.
    """
    cells = [cell.strip() for cell in first]
    while cells and cells[-1] == "":
        cells.pop()
    if len(cells) >= 11 and re.fullmatch(r"\d{13}|\d{16}", cells[0]):
        return (*BINANCE, *[""] * 12)[: len(first)]
    if not cells or not re.match(r"\d", cells[0]):
        return None
    clock = len(cells) > 1 and re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", cells[1]) is not None
    front = ("date", "time") if clock else ("datetime",)
    numbers = len(cells) - len(front)
    if numbers not in (4, 5, 6, 7) or not all(re.fullmatch(r"[-+\d.,eE]+", c) for c in cells[len(front) :] if c):
        return None
    if numbers == 7 and re.fullmatch(r"\d{10}", cells[0]):  # Kraken's OHLC: mean price, volume, count
        return (*front, *PRICES, "", "volume", "", *[""] * (len(first) - 8))
    # MetaTrader ends in tick volume, volume, spread.
    names = (*front, *PRICES, *("volume", "", "")[: numbers - 4])
    return (*names, *[""] * (len(first) - len(names)))
