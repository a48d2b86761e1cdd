"""Times from whatever a price file holds: epochs, digits, ISO, day or month first, offsets, zones. The result is UTC."""

import re
from itertools import product

import numpy as np
import pandas as pd

from rlbench.prices.errors import PriceError
from rlbench.prices.text import Table
from rlbench.prices.time_columns import adjoining_digits, refuse_twelve_hours

_YEAR_FIRST = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%Y年%m月%d日", "%Y-%m")
_NAMED = (
    "%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d %Y", "%B %d %Y", "%a %b %d %Y", "%Y-%b-%d",
)  # fmt: skip
_CLOCK = (  # what may follow a date, most usual first
    "", " %H:%M:%S", " %H:%M", " %H:%M:%S.%f", " %H%M%S", " %H%M", "T%H:%M:%S", "T%H:%M", "T%H:%M:%S.%f", ", %H:%M:%S",
    " %I:%M %p", " %I:%M:%S %p", " %I:%M%p", ", %I:%M %p", ", %I:%M:%S %p", " %H时%M分%S秒", " %H", " %I-%p", "%H%M%S", "%H%M",
)  # fmt: skip
_OFFSET = r"^(.*:\d{2}(?:\.\d+)?)\s*(Z|UTC|GMT|[+-]\d{2}:?(?:\d{2})?)$"
_HAS_OFFSET = r":[0-9][0-9][.0-9]*[ ]*[+-][0-9][0-9]:?[0-9]*$"  # no group: pandas runs it in native code
_STARTS_SHORT = r"[0-9][0-9]?[./-][0-9][0-9]?[./-][0-9][0-9]"
_NUMBERS = r"^(\d{1,2})([./-])(\d{1,2})[./-](\d{4}|\d{2})(?!\d)"


class Times:
    """Reads the time column of a table. After `parse`: `naive_clock` says that the source named no time zone."""

    def __init__(self, table: Table, dayfirst: bool | None, timezone: str | None) -> None:
        self.table, self.dayfirst, self.timezone = table, dayfirst, timezone
        if timezone is not None:
            try:
                pd.Timestamp(0, tz=timezone)
            except (ValueError, KeyError, OSError, TypeError):
                raise PriceError(f"timezone={timezone!r} is unknown; use a name such as 'America/New_York'") from None
        self.naive_clock = False
        self.order_matters = False

    def parse(self, values: pd.Series) -> pd.DatetimeIndex:
        """UTC times (T,), NaT where a cell is empty. Raises PriceError at the first cell that is no time."""
        if isinstance(values.dtype, pd.PeriodDtype):
            values = values.dt.to_timestamp()
        if not pd.api.types.is_datetime64_any_dtype(values) and not pd.api.types.is_numeric_dtype(values):
            values = self._from_objects(values)
        if pd.api.types.is_numeric_dtype(values):
            times = self._from_digits(values.astype("float64"))
        elif pd.api.types.is_datetime64_any_dtype(values):
            times = pd.DatetimeIndex(values)
        else:
            times = self._from_text(values)
        if self.dayfirst is not None and not self.order_matters:
            self.table.notices.append(f"dayfirst={self.dayfirst} was not needed: the order of day and month is plain")
        self._check_years(times)
        return self._to_utc(times)

    def _check_years(self, times: pd.DatetimeIndex) -> None:
        """Refuse years that do not fit in nanoseconds, in which later steps count."""
        outside = (times.year < 1678) | (times.year > 2261)
        if outside.any():
            raise self._refuse(row := int(outside.argmax()), str(times[row]), "accepted are the years 1678 to 2261")

    def _refuse(self, row: int, found: object, advice: str) -> PriceError:
        found = f"{found:.15g}" if isinstance(found, float) else repr(found)
        return PriceError(f"{self.table.where(row)}: {found} is not a time; {advice}")

    def _from_objects(self, values: pd.Series) -> pd.Series:
        """Python dates and datetimes to datetime64; everything else to stripped text."""
        first = next((v for v in values if v is not None and v == v), None)
        if hasattr(first, "year") and hasattr(first, "month"):
            aware = getattr(first, "tzinfo", None) is not None
            try:
                return pd.Series(pd.to_datetime(list(values), utc=aware))
            except (ValueError, TypeError) as error:
                found = f"{self.table.source}: the times mix kinds ({error})"
                raise PriceError(f"{found}; convert them to UTC first") from None
        text = values.astype(str).str.strip()
        text = text.where(~text.str.lower().isin(["nan", "nat", "none", "null"]), "")
        digits, filled = text.str.fullmatch(r"\d{5,19}(\.\d+)?|").to_numpy(bool), (text != "").to_numpy()
        if digits.all():
            return pd.to_numeric(text, errors="coerce") if filled.any() else text
        top = int(filled.argmax())
        if digits[top] and text.iloc[top][:9].isdigit():
            row = int(digits.argmin())
            raise self._refuse(row, text.iloc[row], "other rows hold epochs; write all times alike")
        return text

    def _from_digits(self, values: pd.Series) -> pd.DatetimeIndex:
        """Epochs in s, ms, µs or ns (each by its size), Excel's day numbers, or YYYYMMDD[HHMM[SS]]."""
        numbers = values.to_numpy()
        known = numbers[~np.isnan(numbers)]
        if len(known) and known.min() >= 19000101 and known.max() <= 21001231:
            return self._try(values, ("%Y%m%d",))
        if len(known) and known.min() >= 190001010000 and known.max() <= 210012312359:
            times = self._attempt(values, "%Y%m%d%H%M")
            if not times[~np.isnan(numbers)].isna().any():
                return times
        if len(known) and known.min() >= 19000101000000 and known.max() <= 21001231235959:
            return self._try(values, ("%Y%m%d%H%M%S",))
        if len(known) and known.min() >= 20000 and known.max() <= 80000:
            self.table.notices.append("times are spreadsheet day numbers, counted from 1899-12-30")
            return pd.DatetimeIndex(pd.Timestamp("1899-12-30") + pd.to_timedelta(np.round(numbers * 86400), unit="s"))
        unit = np.select([numbers >= 1e17, numbers >= 1e14, numbers >= 1e11], [1.0, 1e3, 1e6], 1e9)
        outside = ~np.isnan(numbers) & ((numbers < 1e8) | (numbers * unit > 4.2e18))
        if outside.any():
            row = int(outside.argmax())
            raise self._refuse(row, numbers[row], "accepted are epochs in s, ms, µs, ns, YYYYMMDD, or text such as ISO")
        # Integers below 2**53 stay exact in float64; nanosecond epochs are rounded to the microsecond.
        whole = np.where(np.isnan(numbers), 0, np.round(numbers * unit / 1e3)).astype(np.int64)
        times = pd.Series(pd.to_datetime(whole, unit="us", utc=True)).where(~np.isnan(numbers))
        return pd.DatetimeIndex(times)

    def _attempt(self, values: pd.Series, form: str) -> pd.DatetimeIndex:
        text = values if values.dtype != np.float64 else values.astype("Int64").astype(str)
        if digits := adjoining_digits(form):
            text = text.where(text.str.contains(digits, regex=True), "")
        return pd.DatetimeIndex(pd.to_datetime(text, format=form, errors="coerce"))

    def _try(self, values: pd.Series, dates: tuple[str, ...]) -> pd.DatetimeIndex:
        """Read with every date form and every clock form until no cell is left; refuse the first that is."""
        empty = (values.isna() if values.dtype == np.float64 else values == "").to_numpy()
        result = np.full(len(values), np.datetime64("NaT", "us"))  # years 2262 and on would wrap in ns
        left = np.flatnonzero(~empty)
        clocks = ("",) if values.dtype == np.float64 else _CLOCK
        for date, clock in product(dates, clocks):
            if not len(left):
                break
            if self._attempt(values.iloc[left[:1]], date + clock).isna().all() and len(left) > 1000:
                continue  # a form that misses the first cell left is tried on the whole only where that is cheap
            times = self._attempt(values.iloc[left], date + clock)
            done = ~times.isna()
            result[left[done]] = times[done].to_numpy("datetime64[us]")
            left = left[~done]
        if len(left):
            raise self._refuse(
                int(left[0]), values.iloc[left[0]], "write times as 2020-01-31 09:30 or 2020-01-31T09:30:00+00:00"
            )
        return pd.DatetimeIndex(result)

    def _from_text(self, text: pd.Series) -> pd.DatetimeIndex:
        """Text, with or without an offset behind; offsets are taken off and subtracted."""
        filled = (text != "").to_numpy()
        with_offset = (text.str.contains(_HAS_OFFSET, regex=True) | text.str.endswith(("Z", "UTC", "GMT"))).to_numpy(
            bool
        )
        if not with_offset.any():
            return self._local(text)
        if not with_offset[filled].all():
            row = int((filled & ~with_offset).argmax())
            raise self._refuse(row, text.iloc[row], "other rows carry an offset from UTC and this one does not")
        iso = pd.DatetimeIndex(pd.to_datetime(text, format="ISO8601", utc=True, errors="coerce"))
        if not iso[filled].isna().any():
            return iso
        parts = text.str.extract(_OFFSET)
        local = self._local(parts[0].fillna(""))
        minutes = {zone: _offset_minutes(zone) for zone in parts[1].dropna().unique()}
        shift = pd.to_timedelta(parts[1].map(minutes).to_numpy(np.float64), unit="min")
        return (local - shift).tz_localize("UTC")

    def _local(self, text: pd.Series) -> pd.DatetimeIndex:
        """Times without zone."""
        numeric = text.str.match(_STARTS_SHORT).to_numpy(bool)
        if not numeric.any():
            return self._try(text, (*_YEAR_FIRST, *_NAMED))
        if not numeric[(text != "").to_numpy()].all():
            row = int((~numeric & (text != "").to_numpy()).argmax())
            raise self._refuse(
                row, text.iloc[row], "other rows begin with day and month; write all dates alike, best as 2020-01-31"
            )
        self.order_matters = True
        parts = text.str.extract(_NUMBERS)
        first, second = (pd.to_numeric(parts[c]).to_numpy(np.float64) for c in (0, 2))
        separator = parts[1][numeric.argmax()]
        year = "%y" if parts[3].str.len().max() == 2 else "%Y"
        forms = {True: f"%d{separator}%m{separator}{year}", False: f"%m{separator}%d{separator}{year}"}
        return self._try(text, (forms[self._day_is_first(text, first, second, separator, forms)],))

    def _day_is_first(
        self, text: pd.Series, first: np.ndarray, second: np.ndarray, separator: str, forms: dict
    ) -> bool:
        """Whether 03/04/2020 is 3 April: as stated, as a number above 12 proves, or as the order of rows shows."""
        day_rows, month_rows = first > 12, second > 12
        if day_rows.any() and month_rows.any():
            a, b = int(day_rows.argmax()), int(month_rows.argmax())
            raise PriceError(
                f"{self.table.where(a)} has the day first ({text.iloc[a]!r}), line {self.table.rows[b]} the month "
                f"({text.iloc[b]!r}); write all dates alike, best as 2020-01-31"
            )
        proven = True if day_rows.any() else False if month_rows.any() else None
        if self.dayfirst is not None:
            if proven not in (None, self.dayfirst):
                row = int((day_rows | month_rows).argmax())
                raise PriceError(f"{self.table.where(row)}: {text.iloc[row]!r} contradicts dayfirst={self.dayfirst}")
            return self.dayfirst
        ordered = {}
        for order in (True, False) if proven is None else (proven,):
            times = self._try(text, (forms[order],)).dropna()
            ordered[order] = times.is_monotonic_increasing or times.is_monotonic_decreasing
        if proven is not None:
            if not ordered[proven]:
                raise PriceError(
                    f"{self.table.source}: dates such as {text.iloc[0]!r} are out of order when read with the "
                    f"{'day' if proven else 'month'} first, as if the file mixed two orders; write them as 2020-01-31, or "
                    f"sort them and state dayfirst={proven}"
                )
            return proven
        if separator == "." or sum(ordered.values()) == 1:
            order = True if separator == "." else ordered[True]
            self.table.notices.append(f"dates such as {text.iloc[0]} read with the {'day' if order else 'month'} first")
            return order
        raise PriceError(
            f"{self.table.where(0)}: {text.iloc[0]!r} may have the day or the month first; state dayfirst=True or False"
        )

    def _to_utc(self, times: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """UTC; times without zone are taken in `timezone`, or as UTC."""
        if times.tz is not None:
            if self.timezone is not None:
                self.table.notices.append(f"timezone={self.timezone!r} was not needed: the times name their zone")
            return times.tz_convert("UTC")
        days_only = bool((times.dropna() == times.dropna().normalize()).all())
        self.naive_clock = not days_only and self.timezone is None
        refuse_twelve_hours(self.table, times)
        if self.timezone is None:
            return times.tz_localize("UTC")
        filled = np.flatnonzero(~times.isna())
        if len(filled) > 1 and times[filled[0]] > times[filled[-1]]:
            filled = filled[::-1]  # newest first: a repeated hour is told apart by the order of the rows
        known = times[filled]
        # A day without midnight (a clock change at 00:00) begins an hour later.
        late = "shift_forward" if days_only else "raise"
        try:
            local = known.tz_localize(self.timezone, ambiguous="infer", nonexistent=late).tz_convert("UTC")
        except ValueError:
            unclear = known.tz_localize(self.timezone, ambiguous="NaT", nonexistent="NaT").isna()
            row = int(filled[int(unclear.argmax())])
            raise PriceError(
                f"{self.table.where(row)}: {times[row]} is no single time in {self.timezone} (clock change); export the "
                "bars in UTC, or with offsets such as -04:00"
            ) from None
        result = pd.Series(pd.NaT, index=range(len(times)), dtype="datetime64[ns, UTC]")
        result.iloc[filled] = local
        return pd.DatetimeIndex(result)


def _offset_minutes(zone: str) -> int:
    """Minutes east of UTC: "-05:00" -> -300, "Z" -> 0."""
    digits = re.sub(r"\D", "", zone)
    size = int(digits[:2] or 0) * 60 + int(digits[2:] or 0)
    return -size if zone.startswith("-") else size
