"""Which cells of a table tell the time: a column, a date and a time of day in two, or a first column without a name."""

import re

import numpy as np
import pandas as pd

from rlbench.prices.columns import TIMES
from rlbench.prices.errors import PriceError
from rlbench.prices.text import Table

_CLOCK = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(\s*[AaPp][Mm])?"
_NO_NAME = r"(unnamed: ?0|index|level_0|)"  # how pandas writes and reads an index without a name
_STAMP = r"\s*(\d{8}|\d{4}[-/.]\d|\d{1,2}[-/. ]\w+[-/. ]\d{2})"


def unnamed_times(table: Table) -> int | None:
    """Position of a first column that has no name and holds times, as DataFrame.to_csv writes an index; else None."""
    if not table.names or table.names[0] is not None or not re.fullmatch(_NO_NAME, table.header[0].strip().lower()):
        return None
    return 0 if table.cells.iloc[:3, 0].astype(str).str.match(_STAMP).any() else None


def time_cells(table: Table, found: dict[str, int]) -> pd.Series:
    """The column of times; date and time of day joined where they are two columns. Columns without a value count not."""
    column = {field: table.cells.iloc[:, found[field]] for field in TIMES if field in found}
    filled = {field: cells for field, cells in column.items() if (cells.astype(str).str.strip() != "").any()}
    column = filled or column
    if "date" in column:
        for field in ("time", "epoch", "datetime"):
            clock = _clock(column[field]) if field in column else None
            if clock is not None:
                return column["date"].astype(str).str.replace(" 00:00:00", "").str.strip() + " " + clock
    return next(column[field] for field in ("epoch", "datetime", "time", "date") if field in column)


def _clock(cells: pd.Series) -> pd.Series | None:
    """Times of day as text; None if the cells are none. Bare digits are HHMMSS, HHMM or hours, by the longest cell."""
    text = cells.astype(str).str.strip().str.removeprefix("0 days ")
    if text.str.fullmatch(_CLOCK).all():
        return text
    if not text.str.fullmatch(r"\d{1,6}").all():
        return None
    longest = text.str.len().max()
    return text.str.zfill(2) + ":00" if longest <= 2 else text.str.zfill(4 if longest <= 4 else 6)


def adjoining_digits(form: str) -> str:
    """A pattern for text that has as many digits as numbers without a separator need, such as %H%M; "" for no such.

    strptime would read " 01" as %H%M, one minute past midnight.
    """
    runs = list(re.finditer(r"(?:%[YmdHMS]){2,}", form))  # at the start or at the end of the form, or all of it
    pattern = ".*".join(rf"\d{{{sum(4 if name == 'Y' else 2 for name in run.group()[1::2])}}}" for run in runs)
    if not runs:
        return ""
    before = "^" if runs[0].start() == 0 else r"(?<!\d)"
    return before + pattern + ("$" if runs[-1].end() == len(form) else r"(?!\d)")


def refuse_twelve_hours(table: Table, times: pd.DatetimeIndex) -> None:
    """Refuse local times out of order that all lie on a 12-hour dial: sorting would put afternoons before mornings."""
    rows = np.flatnonzero(~times.isna())
    known = times[rows]
    hours = np.unique(known.hour)
    dial = len(hours) > 1 and hours[0] == 1 and hours[-1] == 12
    if dial and not known.is_monotonic_increasing and not known.is_monotonic_decreasing:
        back = int((np.diff(known.to_numpy()) < np.timedelta64(0)).argmax()) + 1
        raise PriceError(
            f"{table.where(rows[back])}: {known[back]} follows {known[back - 1]}, and every hour lies between 1 and 12, as if "
            "AM and PM were missing; export the bars with 24 hours, or sort the rows by time if the hours are right"
        )
