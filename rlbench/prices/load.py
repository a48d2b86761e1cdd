"""Load prices from the files that people have: CSV (plain, gzip, zip), Parquet, or a DataFrame, as a checked Market."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from rlbench.features import FeatureFunction
from rlbench.market import COLUMNS, Market, Scaler, adjust, from_prices
from rlbench.prices.checks import check_factor, check_values, drop_missing, find_holes, find_splits, put_in_order
from rlbench.prices.columns import PRICES, TIMES
from rlbench.prices.errors import PriceError, tell
from rlbench.prices.frames import read_frame, read_parquet
from rlbench.prices.numbers import Numbers
from rlbench.prices.text import Table, read_text
from rlbench.prices.time_columns import time_cells, unnamed_times
from rlbench.prices.times import Times

LARGE = 30_000_000  # bytes; a file above takes seconds, so reading it is announced


def load_prices(
    source: str | PathLike | pd.DataFrame,
    *,
    ticker: str | None = None,
    features: FeatureFunction | None = None,
    train: float = 0.6,
    validation: float = 0.2,
    scaler: Scaler | None = None,
    name: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    dayfirst: bool | None = None,
    timezone: str | None = None,
    encoding: str | None = None,
    columns: list[str] | None = None,
    splits: Mapping[str, float] | None = None,
    bars_per_year: float | None = None,
) -> Market:
    """Read, check and mend prices, and compute their features. What was mended is told on stderr and in `notices`.

    ticker: which one, in a source with several. features: a function DataFrame -> one row of features a bar, used
    instead of the standard ones; columns named `feature_*` are used beside them. train, validation: shares of the bars.
    scaler: a frozen scaler, else fitted on the train share. decimal, thousands, dayfirst, encoding: settle what the
    source leaves open. timezone: of times without one ("America/New_York"); else they count as UTC. columns: names for
    all columns of a file without a usable header. splits: {"2020-08-31": 4} for a 4:1 split effective on that day that
    the prices were not adjusted for. bars_per_year: overrides the count from the times.

    An adjusted close adjusts all prices, and the volume inversely. Times become UTC, strictly increasing. Raises
    PriceError (a ValueError) with source, row and remedy for what cannot be mended.
    """
    table = _read(source, encoding, columns, plain_numbers=decimal != "," and thousands != ".")
    found = _choose_columns(table, ticker)
    times, prices, given, adjusted = _parse(table, found, decimal, thousands, dayfirst, timezone)
    prices = check_values(table, prices)
    notices = table.notices
    if adjusted is not None:
        factor = check_factor(table, prices, adjusted)
        if not np.allclose(factor, 1.0, rtol=1e-6):
            prices = adjust(prices, factor)
            notices.append("prices multiplied by adjusted close / close: splits and dividends are taken out")
    if splits:
        prices = _apply_splits(prices, splits, table.source)
    notices += [*find_splits(prices), *find_holes(times)]
    chosen = name or ticker or (Path(table.source).name.split(".")[0] if table.row_word == "line" else table.source)
    market = from_prices(
        prices,
        name=chosen,
        given=given,
        features=features,
        train=train,
        validation=validation,
        scaler=scaler,
        bars_per_year=bars_per_year,
        notices=notices,
    )
    tell(table.source, market.notices)
    return market


def _read(
    source: str | PathLike | pd.DataFrame, encoding: str | None, columns: list[str] | None, plain_numbers: bool
) -> Table:
    if isinstance(source, pd.DataFrame):
        if encoding is not None:
            raise PriceError("encoding= is for text files; a DataFrame holds decoded text")
        return read_frame(source, columns=columns)
    if not isinstance(source, str | PathLike):
        raise PriceError(f"load_prices takes a path or a DataFrame, not {type(source).__name__}")
    path = Path(source).expanduser()
    if not path.is_file():
        what = f"{path} is a folder: name" if path.is_dir() else f"no file {path}: check"
        raise PriceError(f"{what} the path of one file, relative to {Path.cwd()}")
    size = path.stat().st_size
    if size > LARGE:
        tell(path.name, [f"reading {size / 1e6:.0f} MB"])
    with path.open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    if parquet:
        if encoding is not None or columns is not None:
            raise PriceError(f"{path.name}: encoding= and columns= are for text files; Parquet names its own")
        return read_parquet(path)
    return read_text(path, encoding, columns, plain_numbers)


def _choose_columns(table: Table, ticker: str | None) -> dict[str, int]:
    """Field -> column position, after keeping the rows or columns of one ticker. Raises PriceError."""
    candidates: dict[str, list[tuple[int, int]]] = {}
    for position, known in enumerate(table.names):
        if known is not None and known[0]:
            candidates.setdefault(known[0], []).append((known[1], position))
    if "ticker" in candidates and table.tickers is None:
        cells = table.cells.iloc[:, min(candidates["ticker"])[1]].astype(str).str.strip()
        chosen = _ticker(table, list(cells.unique()), ticker)
        if ticker is not None:  # else there is one only, and a row that does not name it is not lost in silence
            table.keep((cells == chosen).to_numpy())
    elif table.tickers is not None:
        prices = [p for field in (*PRICES, "adjusted", "volume") for _, p in candidates.get(field, [])]
        wanted = _ticker(table, [table.tickers[p] for p in prices], ticker)
        for field in (*PRICES, "adjusted", "volume"):
            candidates[field] = [(r, p) for r, p in candidates.get(field, []) if table.tickers[p] == wanted]
    elif ticker is not None:
        raise PriceError(f"{table.source}: ticker={ticker!r} was given and no column holds tickers; leave ticker= out")
    found = {field: _best(table, field, places) for field, places in candidates.items() if places}
    if not set(found) & set(TIMES) and (first := unnamed_times(table)) is not None:
        found["datetime"] = first
    if "close" not in found or not set(found) & set(TIMES):
        lacking = "a close" if "close" not in found else "a date or time"
        raise PriceError(
            f"{table.source}: no column for {lacking}; found {', '.join(repr(h) for h in table.header if h)}. Rename one, "
            'or name all: columns=["datetime", "open", "high", "low", "close", "volume"]'
        )
    return found


def _ticker(table: Table, there: list[str], ticker: str | None) -> str:
    """The one ticker to keep; PriceError lists those there if the choice is open or wrong."""
    there = sorted({t for t in there if t and t.lower() not in ("nan", "none")})
    if ticker is None and len(there) == 1:
        return there[0]
    if ticker in there:
        return ticker  # type: ignore[return-value]
    listed = ", ".join(there[:20]) + (f" and {len(there) - 20} more" if len(there) > 20 else "")
    said = f"no ticker {ticker!r}" if ticker is not None else f"{len(there)} tickers"
    raise PriceError(f'{table.source}: {said}; choose one with ticker="...", found: {listed}')


def _best(table: Table, field: str, places: list[tuple[int, int]]) -> int:
    """The column to trust for a field; two of equal standing are refused unless they hold the same."""
    places = sorted(places)
    if field == "volume":  # MetaTrader's real volume is often all zero beside a filled tick volume
        for _, position in places:
            if len(places) == 1 or (~table.cells.iloc[:, position].isin([0, *["0", "0.0", "0.00"], ""])).any():
                return position
    rivals = [p for r, p in places if r == places[0][0]]
    for rival in rivals[1:]:
        if field != "volume" and not table.cells.iloc[:, rival].equals(table.cells.iloc[:, rivals[0]]):
            raise PriceError(
                f"{table.source}: columns {table.header[rivals[0]]!r} (number {rivals[0] + 1}) and {table.header[rival]!r} "
                f"(number {rival + 1}) both mean {field} and differ; remove or rename one"
            )
    return places[0][1]


def _parse(
    table: Table,
    found: dict[str, int],
    decimal: str | None,
    thousands: str | None,
    dayfirst: bool | None,
    timezone: str | None,
) -> tuple[pd.DatetimeIndex, pd.DataFrame, pd.DataFrame | None, np.ndarray | None]:
    """(times, open..volume, feature columns or None, adjusted close or None), ordered, complete, still unchecked."""
    _drop_footer(table, found)
    fields = [f for f in found if f in (*PRICES, "adjusted", "volume") or f.startswith("feature_")]
    numbers = pd.DataFrame(Numbers(table, decimal, thousands).parse({f: found[f] for f in fields}))
    _complete(table, numbers)
    reader = Times(table, dayfirst, timezone)
    times = reader.parse(time_cells(table, found))
    keep = drop_missing(table, numbers, times)
    table.keep(keep)
    numbers, times = numbers[keep], times[keep]
    order = put_in_order(table, numbers, times)
    numbers, times, table.rows = numbers.iloc[order], times[order].rename("time"), table.rows[order]
    if reader.naive_clock:
        table.notices.append('times name no zone and count as UTC; timezone="America/New_York" or the like changes it')
    numbers.index = times
    named = [f for f in fields if f.startswith("feature_")]
    adjusted = numbers["adjusted"].to_numpy() if "adjusted" in numbers else None
    return times, numbers[list(COLUMNS)], numbers[named] if named else None, adjusted


def _drop_footer(table: Table, found: dict[str, int]) -> None:
    """Drop last lines without any price, such as "source: ...", and say so."""
    close = table.cells.iloc[-20:, found["close"]]
    blank = (close.isna() | (close.astype(str).str.strip() == "")).to_numpy()
    first = next(found[f] for f in TIMES if f in found)
    dated = table.cells.iloc[-20:, first].astype(str).str.match(r"\s*\W?\d").to_numpy(bool)
    footer = int(np.logical_and.accumulate((blank & ~dated)[::-1]).sum())
    if footer:
        table.notices.append(f"dropped {footer} closing line(s) without prices")
        table.keep(np.arange(len(table.rows)) < len(table.rows) - footer)


def _complete(table: Table, numbers: pd.DataFrame) -> None:
    """Make bars from the close alone where there are no others; count absent volume as 0."""
    absent = [c for c in ("open", "high", "low") if c not in numbers]
    if absent:
        table.notices.append(f"no column for {', '.join(absent)}: made from the other prices of the bar")
    if "open" in absent:
        numbers["open"] = numbers["close"]
    for column, pick in (("high", np.maximum), ("low", np.minimum)):
        if column in absent:
            numbers[column] = pick(numbers["open"], numbers["close"])
    if "volume" not in numbers:
        numbers["volume"] = 0.0
        table.notices.append("no column for volume: counted as 0")
    lacking = numbers["volume"].isna() & numbers["close"].notna()
    if lacking.any():
        table.notices.append(f"{int(lacking.sum())} missing volume(s) counted as 0")
        numbers["volume"] = numbers["volume"].fillna(0.0)


def _apply_splits(prices: pd.DataFrame, splits: Mapping[str, float], source: str) -> pd.DataFrame:
    """Divide the prices before each day by its ratio (new shares for one old)."""
    factor = np.ones(len(prices))
    for day, ratio in splits.items():
        try:
            start = pd.Timestamp(day)
        except ValueError:
            raise PriceError(f"splits: {day!r} is no date; write 2020-08-31") from None
        start = start.tz_localize("UTC") if start.tz is None else start
        before = np.asarray(prices.index < start)
        if not before.any() or before.all() or not ratio > 0:
            raise PriceError(f"{source}: splits={{{day!r}: {ratio}}} needs a ratio above 0 and a day inside the prices")
        factor[before] /= ratio
    return adjust(prices, factor)
