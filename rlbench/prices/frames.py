"""DataFrames and Parquet files as tables of cells, in the same form as text files."""

from pathlib import Path

import numpy as np
import pandas as pd

from rlbench.prices.columns import TIMES, meaning, name_columns
from rlbench.prices.errors import PriceError
from rlbench.prices.text import Table


def read_parquet(path: Path) -> Table:
    """The table in a Parquet file. Raises PriceError."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise PriceError(f"{path.name}: reading Parquet needs pyarrow; install it with `pip install pyarrow`") from None
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError) as error:
        raise PriceError(f"cannot read {path}: {error}. Write the file again, or give it as CSV") from None
    return read_frame(frame, path.name)


def read_frame(frame: pd.DataFrame, source: str = "DataFrame", columns: list[str] | None = None) -> Table:
    """The table in a DataFrame, which is left as it was. The index is the time where no column is. Raises PriceError."""
    frame = frame.copy(deep=False)
    if columns is not None:
        if len(columns) != frame.shape[1]:
            raise PriceError(f"columns names {len(columns)} columns, the DataFrame has {frame.shape[1]}")
        frame.columns = pd.Index(columns)
    levels = [list(map(str, frame.columns.get_level_values(i))) for i in range(frame.columns.nlevels)]
    extra: list[tuple[str, pd.Series]] = []
    stamped = any(_tells_bars_apart(frame.index.get_level_values(i)) for i in range(frame.index.nlevels))
    has_time = not stamped and any(
        (known := meaning(c)) is not None and known[0] in TIMES for level in levels for c in level
    )
    for i in range(frame.index.nlevels):
        level = frame.index.get_level_values(i)
        known = meaning(str(level.name)) if level.name is not None else None
        wanted = known is not None and known[0] in (*TIMES, "ticker")
        timed = isinstance(level, pd.DatetimeIndex | pd.PeriodIndex) or (known is None and level.dtype == object)
        timed = timed or isinstance(level.dtype, pd.StringDtype)
        if wanted or (timed and not has_time):
            extra.append((str(level.name) if wanted else "datetime", pd.Series(level)))
    header = [[name for name, _ in extra] + level for level in levels]
    if len(header) > 1:  # the index belongs to the time column in one level, to nothing in the others
        header = [header[0]] + [[""] * len(extra) + level for level in levels[1:]]
    parts = [series.reset_index(drop=True) for _, series in extra]
    parts += [frame.iloc[:, i].reset_index(drop=True) for i in range(frame.shape[1])]
    cells = pd.concat(parts, axis=1) if parts else pd.DataFrame()
    cells.columns = range(cells.shape[1])
    if not header or not cells.shape[1]:
        raise PriceError(f"{source}: no columns; expected open, high, low, close, volume and a time")
    names, tickers = name_columns(header)
    if stamped:  # columns such as "hour" or "day" beside it are something else
        names = [None if i >= len(extra) and n is not None and n[0] in TIMES else n for i, n in enumerate(names)]
    best = (
        header[0]
        if len(header) == 1
        else [" ".join(level[i] for level in header).strip() for i in range(len(header[0]))]
    )
    return Table(cells, names, best, tickers, np.arange(len(cells)), source, row_word="row")


def _tells_bars_apart(level: pd.Index) -> bool:
    """Whether an index of times says when each bar was; one of days that repeat needs a column with the time of day."""
    if isinstance(level, pd.PeriodIndex):
        return True
    return isinstance(level, pd.DatetimeIndex) and (level.is_unique or bool((level != level.normalize()).any()))
