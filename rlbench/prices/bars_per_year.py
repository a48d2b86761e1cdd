"""How many bars a year holds, from the times of the bars alone."""

import numpy as np
import pandas as pd

DAY = 86_400.0  # seconds
YEAR_DAYS = 365.25
TRADING_DAYS = 252.0  # sessions a year of a stock exchange, for files too short to count them


def seconds(times: pd.DatetimeIndex) -> np.ndarray:
    """Seconds since 1970 of UTC times, (T,) float64."""
    return times.tz_convert("UTC").tz_localize(None).to_numpy("datetime64[ns]").astype(np.int64) / 1e9


def bars_per_year(times: pd.DatetimeIndex) -> float:
    """Bars in a year of this market, holidays and closed hours counted as such.

    Eleven months or more: bars over elapsed years, long holes left out. A shorter file cannot show its holidays: bars
    of a usual day times 252 sessions, or 365.25 days where a weekend has bars or no weekend was covered by a market
    that never closes.
    """
    if len(times) < 2:
        return float("nan")
    clock = seconds(times)
    steps = np.diff(clock)
    usual = float(np.median(steps))
    holes = steps > max(10 * DAY, 10 * usual)
    span = float(steps[~holes].sum())
    if span >= 330 * DAY or usual > 1.5 * DAY:
        return float((~holes).sum() / (span / (YEAR_DAYS * DAY)))
    days = np.floor(clock / DAY).astype(np.int64)
    _, bars_a_day = np.unique(days, return_counts=True)
    full = bars_a_day[1:-1] if len(bars_a_day) > 2 else bars_a_day
    per_day = float(np.median(full))
    # 1970-01-01 was a Thursday. Currency markets open late on Sunday, which makes no weekend.
    weekend = ((days + 3) % 7 >= 5).mean() > 0.15
    covered = np.arange(days[0], days[-1] + 1)
    weekend_covered = ((covered + 3) % 7 == 5).any() and ((covered + 3) % 7 == 6).any()
    if usual >= 0.9 * DAY:
        return YEAR_DAYS if weekend else TRADING_DAYS
    if per_day * usual >= 0.95 * DAY or len(bars_a_day) == 1:
        closes = weekend_covered and not weekend
        return DAY / usual * (TRADING_DAYS if closes else YEAR_DAYS) if len(bars_a_day) > 1 else _one_day(clock, usual)
    return per_day * (YEAR_DAYS if weekend else TRADING_DAYS)


def _one_day(clock: np.ndarray, usual: float) -> float:
    """Bars a year of a file of one day: a session of the usual length is taken as an exchange's, more as 24 hours."""
    hours = (clock[-1] - clock[0] + usual) / 3600
    return len(clock) * TRADING_DAYS if 5 <= hours <= 9 else DAY / usual * YEAR_DAYS
