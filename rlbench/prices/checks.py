"""Checks of prices that have been read: each mends with a notice, or refuses with the row and the remedy."""

import numpy as np
import pandas as pd

from rlbench.prices.errors import PriceError
from rlbench.prices.text import Table

OHLC = ["open", "high", "low", "close"]
ROUNDING = 0.01  # an open or close this share outside low..high is a rounding, more is an error
SPLITS = (1.5, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 25, 30, 40, 50, 100)  # usual splits, n new shares for one
SPLIT_TOLERANCE = 0.03  # an overnight ratio this close to one of them is suspicious


_WHY = {  # whether each day has one time only -> why most times are there more than once, with other prices
    True: "the time of day is missing, or there are several instruments. Export the bars with date and time (columns= may "
    "name the column), or name the column of the instruments ticker and choose one with ticker=",
    False: "several instruments, or trades instead of bars. Name the column of the instruments ticker and choose one with "
    "ticker=, or make bars of the trades first",
}


def drop_missing(table: Table, prices: pd.DataFrame, times: pd.DatetimeIndex) -> np.ndarray:
    """Mask of rows to keep: rows without any price are dropped with a notice, rows with some of them refused."""
    gone = prices[OHLC].isna()
    empty = gone.all(axis=1).to_numpy()
    untimed = np.asarray(times.isna())
    partly = (gone.any(axis=1).to_numpy() | untimed) & ~empty
    if partly.any():
        row = int(partly.argmax())
        what = "the time" if untimed[row] else ", ".join(c for c in OHLC if gone[c].iloc[row])
        raise PriceError(f"{table.where(row)} ({_day(times[row])}): {what} is missing; fill it in or remove the row")
    if empty.any():
        row = int(empty.argmax())
        table.notices.append(
            f"dropped {int(empty.sum())} row(s) without prices, first {table.row_word} {table.rows[row]} ({_day(times[row])})"
        )
    return ~empty


def put_in_order(table: Table, prices: pd.DataFrame, times: pd.DatetimeIndex) -> np.ndarray:
    """Positions of the rows in time order, of equal times only the newest row, with notices for what was changed."""
    clock = times.to_numpy("datetime64[ns]").astype(np.int64)
    steps = np.diff(clock)
    order = np.arange(len(clock))
    if len(steps) and (steps <= 0).all() and (steps < 0).any():
        order = order[::-1]
        table.notices.append("rows were newest first; turned round")
    elif (steps < 0).any():
        row = int((steps < 0).argmax()) + 1
        table.notices.append(f"rows were out of order, first {table.row_word} {table.rows[row]}; sorted by time")
        order = np.argsort(clock, kind="stable")
    repeated = np.diff(clock[order]) == 0
    midnight = not repeated.any() or bool(times.normalize().nunique() == len(clock) - repeated.sum())  # one time a day
    values = prices[OHLC].to_numpy()[order]
    differ = repeated & (values[1:] != values[:-1]).any(axis=1)  # a file joined to itself repeats rows unchanged
    if differ.sum() > 0.4 * len(clock):
        row = int(order[int(repeated.argmax()) + 1])
        raise PriceError(f"{table.where(row)}: {_day(times[row])} stands there again and again: {_WHY[midnight]}")
    if repeated.any():
        first = int(repeated.argmax())
        row, kept = int(order[first]), int(order[first + 1])
        hint = "" if midnight else "; if a clock change repeats an hour, set timezone= or write offsets"
        table.notices.append(
            f"{int(repeated.sum())} repeated time(s), the newest row of each kept; first {_day(times[row])} "
            f"({table.row_word}s {table.rows[row]} and {table.rows[kept]}, kept {table.rows[kept]}){hint}"
        )
    return order[np.append(~repeated, True)] if len(order) else order


def check_values(table: Table, prices: pd.DataFrame) -> pd.DataFrame:
    """Refuse what cannot be a price or a volume; widen high and low by rounding errors. `prices` has the time index."""
    volume = prices["volume"].to_numpy()
    for column in ("close", "open", "high", "low", "volume"):
        values = prices[column].to_numpy()
        wrong = ~np.isfinite(values) | (values < 0 if column == "volume" else values <= 0)
        if wrong.any():
            row = int(wrong.argmax())
            raise PriceError(
                f"{table.where(row)} ({_day(prices.index[row])}): {column} is {values[row]:g}; "
                + ("a volume is zero or more" if column == "volume" else "a price is above zero")
                + ": correct the row or remove it"
            )
    low, high = prices["low"].to_numpy(), prices["high"].to_numpy()
    bottom, top = prices[["open", "close"]].min(axis=1).to_numpy(), prices[["open", "close"]].max(axis=1).to_numpy()
    wrong = (high < low) | (low > bottom * (1 + ROUNDING)) | (high < top * (1 - ROUNDING))
    if wrong.any():
        row = int(wrong.argmax())
        bar = ", ".join(f"{c} {prices[c].iloc[row]:g}" for c in OHLC)
        raise PriceError(
            f"{table.where(row)} ({_day(prices.index[row])}): {bar} breaks low <= open, close <= high; correct the row, or "
            "check the order of the columns (columns= names them; this file: "
            f"{', '.join(repr(h) for h in table.header[:8] if h)})"
        )
    outside = (low > bottom) | (high < top)
    if outside.any():
        row = int(outside.argmax())
        table.notices.append(
            f"high or low moved by a rounding to hold open and close in {int(outside.sum())} row(s), "
            f"first {_day(prices.index[row])}"
        )
        prices = prices.assign(high=np.maximum(high, top), low=np.minimum(low, bottom))
    if len(volume) and not volume.any() and not any("no column for volume" in notice for notice in table.notices):
        table.notices.append("every volume is 0: the volume feature says nothing")
    return prices


def check_factor(table: Table, prices: pd.DataFrame, adjusted: np.ndarray) -> np.ndarray:
    """adjusted close / close, (T,), refused where it is no positive number."""
    factor = adjusted / prices["close"].to_numpy()
    wrong = ~np.isfinite(factor) | (factor <= 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise PriceError(
            f"{table.where(row)} ({_day(prices.index[row])}): adjusted close is {adjusted[row]:g}; it must be above zero: "
            "correct it, or remove the column to use the prices as they are"
        )
    return factor


def find_splits(prices: pd.DataFrame) -> list[str]:
    """Notices for overnight jumps close to n:1 or 1:n, which look like splits that the prices were not adjusted for."""
    before, after = prices["close"].to_numpy()[:-1], prices["open"].to_numpy()[1:]
    days = prices.index.normalize()
    overnight = np.asarray(days[1:] != days[:-1])
    ratio = before / after
    found = []
    for row in np.flatnonzero(overnight & (np.maximum(ratio, 1 / ratio) > 1.4)):
        size = max(ratio[row], 1 / ratio[row])
        nearest = min(SPLITS, key=lambda n: abs(np.log(size / n)))
        if abs(np.log(size / nearest)) < SPLIT_TOLERANCE:
            found.append(
                (prices.index[row + 1], (f"{nearest:g}", "1") if ratio[row] > 1 else ("1", f"{nearest:g}"), ratio[row])
            )
    return [
        f"{_day(time)} opens at {1 / jump:.3f} of the close before, like a {n} for {m} split not adjusted for; if it is "
        f'one, set splits={{"{time:%Y-%m-%d}": {n if m == "1" else f"{n}/{m}"}}}, or use a file with an adjusted close'
        for time, (n, m), jump in found
    ]


def find_holes(times: pd.DatetimeIndex) -> list[str]:
    """A notice that counts holes: missing bars of a market that never closes, or of a session, or over a week."""
    if len(times) < 3:
        return []
    clock = times.to_numpy("datetime64[s]").astype(np.int64)
    steps = np.diff(clock)
    usual = float(np.median(steps))
    long = steps > 1.5 * usual
    if not long.any():
        return []
    day = clock // 86_400
    if usual < 86_400:
        weekend = (((day + 3) % 7) >= 5).mean() > 0.2  # two days of seven: never closed
        same_day = day[1:] == day[:-1]
        days = 1 + int((~same_day).sum())
        # A lunch break or the night starts at the same time of day on many days; a hole does not.
        starts = clock[:-1] % 86_400
        count = pd.Series(starts[long]).value_counts()
        regular = np.isin(starts, count.index[count > 0.2 * days].to_numpy()) & (days > 4)
        holes = long & (weekend | same_day) & ~regular | (steps > 7 * 86_400)
    else:
        holes = steps > max(7 * 86_400, 2.5 * usual)
    if not holes.any():
        return []
    widest = int(np.where(holes, steps, 0).argmax())
    length = pd.Timedelta(seconds=int(steps[widest]))
    return [
        f"{int(holes.sum())} hole(s), the longest {length} from {times[widest]:%Y-%m-%d %H:%M}; a step across a hole is one bar"
    ]


def _day(time: pd.Timestamp) -> str:
    """The date, with the time of day if there is one."""
    if time is pd.NaT:
        return "no time"
    return f"{time:%Y-%m-%d}" if time == time.normalize() else f"{time:%Y-%m-%d %H:%M:%S}"
