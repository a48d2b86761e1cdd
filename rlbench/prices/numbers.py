"""Numbers from text: decimal point or comma, thousands separators, currency signs, K/M/B. Never a guess in silence."""

import re

import numpy as np
import pandas as pd

from rlbench.prices.errors import PriceError
from rlbench.prices.text import Table

_MISSING = {"", "nan", "null", "none", "n/a", "na", "#n/a", "-", "--", "—", ".", "nat", "<na>"}
_CURRENCY = "$€£¥₹₩₽"
_SUFFIX = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12, "万": 1e4, "亿": 1e8}


class Numbers:
    """Reads the columns of one table; all of them share one decimal and one thousands separator."""

    def __init__(self, table: Table, decimal: str | None, thousands: str | None) -> None:
        if decimal not in (None, ".", ","):
            raise PriceError(f"decimal={decimal!r}: accepted are '.' and ','")
        if thousands not in (None, ".", ",", " ", "'"):
            raise PriceError(f"thousands={thousands!r}: accepted are ',', '.', ' ' and \"'\"")
        if decimal is not None and decimal == thousands:
            raise PriceError(f"decimal and thousands are both {decimal!r}; they must differ")
        if decimal is None and thousands in (",", "."):
            decimal = "." if thousands == "," else ","
        self.table, self.decimal = table, decimal

    def parse(self, columns: dict[str, int]) -> dict[str, np.ndarray]:
        """Field -> float64 (T,), NaN where a cell is empty. `columns`: field -> column position."""
        plain, text = {}, {}
        for field, position in columns.items():
            cells = self.table.cells.iloc[:, position]
            if pd.api.types.is_bool_dtype(cells):
                raise PriceError(f"{self.table.source}: column {self._name(position)} holds true/false, not numbers")
            if pd.api.types.is_numeric_dtype(cells):
                plain[field] = pd.to_numeric(cells).to_numpy(np.float64, na_value=np.nan)
                continue
            text[field] = cells
            numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
            if not np.isnan(numbers).any():
                plain[field] = numbers
        cleaned = {field: _clean(cells) for field, cells in text.items() if field not in plain}
        if self.decimal is None:
            dots = any(self._has_fraction(columns[field]) for field in plain) if cleaned else False
            self.decimal = self._infer(cleaned, columns, dots)
        if self.decimal == ",":  # then "1.234" is 1234, in every column
            cleaned = {field: _clean(cells) for field, cells in text.items()}
        for field, cells in cleaned.items():
            plain[field] = self._convert(field, columns[field], cells)
        return {field: plain[field] for field in columns}

    def _name(self, position: int) -> str:
        return repr(self.table.header[position])

    def _has_fraction(self, position: int) -> bool:
        """Whether a column of plain numbers shows a decimal point that cannot be a thousands separator."""
        cells = self.table.cells.iloc[:, position]
        if pd.api.types.is_numeric_dtype(cells):
            values = cells.to_numpy(np.float64, na_value=np.nan)
            return bool((np.isfinite(values) & (values != np.round(values))).any())
        cells = cells.iloc[:200]
        return any(_vote(cell) == "." for cell in cells.astype(str))

    def _infer(self, cleaned: dict[str, pd.Series], columns: dict[str, int], dots: bool) -> str:
        """The decimal separator that the cells prove; PriceError if they prove both, or if a comma proves neither."""
        proof: dict[str, str] = {}
        unclear = ""
        for field, cells in cleaned.items():
            for cell, row in zip(cells.drop_duplicates(), cells.drop_duplicates().index, strict=True):
                vote = _vote(cell)
                place = f"{self.table.where(row)}, column {self._name(columns[field])}: {cell!r}"
                if vote:
                    proof.setdefault(vote, place)
                elif "," in cell and not unclear:
                    unclear = place
        if len(proof) == 2 or ("," in proof and dots):
            raise PriceError(
                f"{proof[',']} uses a decimal comma, while {proof.get('.', 'other columns use a decimal point')}; "
                "write all numbers alike, or state decimal= and thousands="
            )
        if unclear and not proof and not dots:
            raise PriceError(
                f'{unclear} may be a thousands separator or a decimal comma; state thousands="," or decimal=","'
            )
        return next(iter(proof), ".")

    def _convert(self, field: str, position: int, cells: pd.Series) -> np.ndarray:
        """Float64 (T,) of cleaned text under the decimal separator; PriceError at the first cell that does not fit."""
        thousands = "," if self.decimal == "." else "."
        missing = cells.isin(_MISSING).to_numpy()
        factor = np.ones(len(cells))
        if field == "volume":
            last = cells.str[-1:]
            factor = last.map(_SUFFIX).fillna(1.0).to_numpy(np.float64)
            cells = cells.where(~last.isin(list(_SUFFIX)), cells.str[:-1])
        grouped = cells.str.contains(thousands, regex=False).to_numpy(bool)
        # Groups of three; two in the upper places, as in India (12,34,567).
        group, point = re.escape(thousands), re.escape(self.decimal)
        fits = rf"[-+]?\d{{1,3}}(?:{group}\d{{2,3}})*{group}\d{{3}}(?:{point}\d*)?"
        wrong = grouped & ~missing & ~cells.str.fullmatch(fits).to_numpy(bool)
        plain = cells.str.replace(thousands, "", regex=False).str.replace(self.decimal, ".", regex=False)
        values = pd.to_numeric(plain, errors="coerce").to_numpy(np.float64, na_value=np.nan).copy()
        wrong |= np.isnan(values) & ~missing
        if wrong.any():
            row = int(wrong.argmax())
            raise PriceError(
                f"{self.table.where(row)}, column {self._name(position)}: {self.table.cells.iat[row, position]!r} is not a "
                f"number with decimal {self.decimal!r} and thousands {thousands!r}; correct it, or set decimal= or thousands="
            )
        values[missing] = np.nan
        return values * factor


def _clean(cells: pd.Series) -> pd.Series:
    """Lower case, without currency signs and outer blanks; inside, only what separates thousands is taken out.

    A blank or an apostrophe before other than three digits stays, and is refused: 130'16 is 130 and 16/32.
    """
    cells = cells.astype(str).str.replace(f"[{_CURRENCY}]", "", regex=True).str.replace("−", "-", regex=False)
    cells = cells.str.replace(r"(?<=\d)[\s'’](?=\d{3}(?!\d))", "", regex=True)
    return cells.str.replace(r"(?<!\d)\s|\s(?!\d)", "", regex=True).str.lower()


def _vote(cell: str) -> str:
    """The decimal separator that one cell proves, or "" if it proves none ("1,234" and "1.234" prove none)."""
    commas, dots = cell.count(","), cell.count(".")
    if commas and dots:
        return "," if cell.rfind(",") > cell.rfind(".") else "."
    if commas > 1 or dots > 1:
        return "." if commas else ","
    if not commas and not dots:
        return ""
    separator = "," if commas else "."
    head, tail = cell.lstrip("+-").split(separator)
    could_group = re.fullmatch(r"[1-9]\d{0,2}", head) and re.fullmatch(r"\d{3}[kmbt万亿]?", tail)
    return "" if could_group or not (head + tail)[:1].isdigit() else separator
