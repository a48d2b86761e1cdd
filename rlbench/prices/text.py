"""Price files as tables of text: decompress, decode, find the separator and the header, keep the line numbers."""

import csv
import gzip
import io
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from rlbench.prices.columns import PRICES, count_known, headerless, name_columns
from rlbench.prices.errors import PriceError

LOOK = 30  # lines looked at to find the separator and the header


@dataclass
class Table:
    """Cells of a source, their column meanings, and what to call each row in a message."""

    cells: pd.DataFrame  # columns 0..n-1
    names: list[tuple[str, int] | None]  # meaning of each column
    header: list[str]  # its name as found, for messages
    tickers: list[str] | None  # ticker of each column, where the columns are headed by tickers
    rows: np.ndarray  # line number or index label of each row
    source: str
    separator: str = ""
    row_word: str = "line"
    notices: list[str] = field(default_factory=list)

    def where(self, row: int) -> str:
        """ "prices.csv, line 12" for the row at position `row`."""
        return f"{self.source}, {self.row_word} {self.rows[row]}"

    def keep(self, mask: np.ndarray) -> None:
        """Drop the rows where `mask` is false."""
        self.cells, self.rows = self.cells[mask].reset_index(drop=True), self.rows[mask]


def read_bytes(path: Path) -> bytes:
    """Content of `path`, unpacked if it is a gzip or a zip of one file."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [n for n in archive.namelist() if not n.endswith("/") and not n.startswith("__MACOSX/")]
                if "[Content_Types].xml" in members:
                    raise PriceError(f"{path.name} is a spreadsheet: save it as CSV, or pass pandas.read_excel(...)")
                if len(members) != 1:
                    raise PriceError(
                        f"{path.name} holds {len(members)} files; unpack it and name one of: {members[:5]}"
                    )
                return archive.read(members[0])
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PriceError(f"cannot read {path}: {reason}. Check the path, or download the file again") from None
    return data


def decode(data: bytes, source: str, encoding: str | None) -> tuple[str, str]:
    """Text and encoding: the one given, or a byte order mark, UTF-8, GBK (if Chinese names appear), Windows-1252."""
    if encoding is not None:
        try:
            return data.decode(encoding).removeprefix("\ufeff"), encoding
        except (UnicodeDecodeError, LookupError) as error:
            raise PriceError(f"{source}: not readable as encoding={encoding!r}: {error}") from None
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(name, errors="replace"), name
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        if b"\x00" in data[:1000]:
            raise PriceError(f"{source}: not a text file ({error}); accepted are CSV, CSV.gz and Parquet") from None
    for name in ("gb18030", "big5", "shift_jis"):
        text = data.decode(name, errors="replace")
        if re.search("日期|时间|時間|日付|收盘|收盤|終値|开盘", text[:4000]):
            return text, name
    return data.decode("cp1252", errors="replace"), "cp1252"


def find_separator(lines: list[str]) -> str:
    """Tab, semicolon, bar, comma: the first that cuts nearly all lines into at least three; else blanks."""
    for separator in "\t;|,":
        cut = [len(row) for row in csv.reader(lines, delimiter=separator)]
        if sum(n >= 3 for n in cut) >= max(1, 0.6 * len(cut)) or (separator != "," and cut.count(2) > 0.9 * len(cut)):
            return separator
    return "," if any("," in line for line in lines) else r"\s+"


def read_text(path: Path, encoding: str | None, columns: list[str] | None, plain_numbers: bool = True) -> Table:
    """The table in a text file. `columns` names the columns of a file without header. Raises PriceError.

    plain_numbers: whether "1.234" may be read at once as a number with a decimal point.
    """
    source = path.name
    text, used = decode(read_bytes(path), source, encoding)
    lines = [line for line in text[:200_000].splitlines()[:200] if line.strip()][:LOOK]
    if not lines:
        raise PriceError(f"{source}: the file is empty; a header and at least two rows of prices are needed")
    separator = find_separator(lines)
    top = _cut(text[:200_000].splitlines()[: 2 * LOOK], separator)
    first, header = _find_header(top, source, columns)
    names, tickers = name_columns(header)
    numeric = [c for c, known in enumerate(names) if known is not None and known[0] in (*PRICES, "adjusted", "volume")]
    width = max(len(row) for row in [*top, *header])
    cells = _read_cells(text, separator, first, source, width, numeric if plain_numbers else [])
    names = [*names, *[None] * (cells.shape[1] - len(names))]
    best = [*max(header, key=count_known), *[""] * cells.shape[1]]
    table = Table(cells, names, best, tickers, np.arange(first, first + len(cells)) + 1, source, separator)
    if used not in ("utf-8", "utf-8-sig", encoding):
        table.notices.append(f"text read as {used} (not UTF-8); encoding= changes it")
    _refuse_long_lines(table, max(len(row) for row in header))
    # A header repeated further down comes from files joined end to end.
    last = header[-1] if columns is None else []
    repeated = (cells[0] == last[0]).to_numpy().copy() if last else np.zeros(len(cells), dtype=bool)
    if repeated.any():
        repeated &= (cells.iloc[:, : len(last)] == last).all(axis=1).to_numpy()
    if repeated.any():
        table.notices.append(
            f"dropped {int(repeated.sum())} repeated header line(s), first {table.where(int(repeated.argmax()))}"
        )
    texts = [c for c in cells if not pd.api.types.is_numeric_dtype(cells[c])]
    if len(texts) == cells.shape[1]:  # a blank line is no number, so columns read as numbers rule it out
        table.keep(~repeated & ~np.logical_and.reduce([(cells[c] == "").to_numpy() for c in texts]))
    return table


def _refuse_long_lines(table: Table, width: int) -> None:
    """A filled cell beyond the header means that a separator stands inside a number or a text."""
    for column in range(width, table.cells.shape[1]):
        filled = (table.cells[column] != "").to_numpy()
        if filled.any():
            raise PriceError(
                f"{table.where(int(filled.argmax()))}: more cells than the header names ({width}; separator "
                f'{table.separator!r}). Quote numbers that contain the separator ("1,234.50"), or use semicolons'
            )


def _cut(lines: list[str], separator: str) -> list[list[str]]:
    if separator == r"\s+":
        return [line.split() for line in lines]
    return list(csv.reader(lines, delimiter=separator))


def _find_header(top: list[list[str]], source: str, columns: list[str] | None) -> tuple[int, list[list[str]]]:
    """(number of lines before the data, the header rows)."""
    # Yahoo's rows may name a single field, with the time column two rows further down.
    blocks = [[cell for line in top[i : i + 3] for cell in line] for i in range(len(top))]
    known = [
        i for i, row in enumerate(top) if count_known(row) >= 2 or (count_known(row) and count_known(blocks[i]) >= 2)
    ]
    if columns is not None:
        data = next((i for i, row in enumerate(top) if _is_data(row)), 0)
        return (known[0] + 1 if known else data), [columns]
    if known:
        stop = known[0] + 1
        while stop < len(top) and stop < known[0] + 4 and not _is_data(top[stop]):
            stop += 1
        start = known[0]
        while start > 0 and known[0] - start < 2 and len(top[start - 1]) == len(top[known[0]]):
            start -= 1
        return stop, [row for row in top[start:stop] if any(cell.strip() for cell in row)]
    for i, row in enumerate(top):
        names = headerless(row)
        if names is not None:
            _refuse_unknown_header(top[i - 1] if i else [], row, source)
            return i, [[name or "spread" for name in names]]
    raise PriceError(
        f"{source}: no header with names such as Date, Open, High, Low, Close, and no known form without header; "
        f'first line {top[0] if top else ""}. Name the columns: columns=["datetime", "open", "high", "low", "close"]'
    )


def _refuse_unknown_header(above: list[str], first: list[str], source: str) -> None:
    """Refuse names that nobody understood above the first row: they may well stand in another order than the usual."""
    words = [cell for cell in above if re.search(r"[^\W\d]", cell)]
    if len(above) == len(first) and len(words) >= 3:
        raise PriceError(
            f"{source}: no price in the header {above}; name the columns in their order, for example "
            'columns=["datetime", "open", "high", "low", "close", "volume"], "" for one that is not needed'
        )


def _is_data(row: list[str]) -> bool:
    """Whether a row under the header holds values: its first cell begins with a digit, or another one is a number."""
    starts = bool(row) and re.match(r"\s*\d", row[0]) is not None
    return starts or any(re.search(r"\d", cell) and not re.search(r"[A-Za-z]{2}", cell) for cell in row[1:])


def _read_cells(text: str, separator: str, skip: int, source: str, width: int, numeric: list[int]) -> pd.DataFrame:
    """All cells as text; or, much faster, the columns `numeric` as float64 where every one of their cells is plain."""
    for types in ({c: "float64" if c in numeric else "str" for c in range(width + 1)}, "str"):
        try:
            return pd.read_csv(
                io.StringIO(text),
                sep=separator,
                header=None,
                names=range(width + 1),  # one more, so that a longer line shows instead of being cut
                skiprows=skip,
                dtype=types,
                na_filter=False,
                skip_blank_lines=False,
                low_memory=False,
            )
        except pd.errors.EmptyDataError:
            raise PriceError(f"{source}: a header and no rows; at least two rows of prices are needed") from None
        except pd.errors.ParserError as error:
            raise PriceError(
                f"{source}: the lines have different numbers of cells ({str(error).strip()}; separator {separator!r}). "
                'Quote numbers that contain the separator ("1,234.50"), or save the file with semicolons'
            ) from None
        except (ValueError, OverflowError):
            continue  # some cell is no plain number
    raise PriceError(f"{source}: the lines cannot be read as text; check that the file is complete")
