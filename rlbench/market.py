"""A market: bars, features, the split in time, and what scales them. Everything is computed once, at construction.

Splits are by time, never at random. The scaler is fitted on the train part alone, so validation and test teach the
features nothing. Slices are views and cost next to nothing.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rlbench.features import FeatureFunction, combine
from rlbench.prices.bars_per_year import bars_per_year as count_bars_per_year
from rlbench.prices.errors import PriceError

COLUMNS = ("open", "high", "low", "close", "volume")
FEATURE_LIMIT = 10.0  # scaled features are clipped to +-10 train standard deviations, so observations are bounded
DATA = Path(__file__).resolve().parent.parent / "data"


class Scaler(NamedTuple):
    """Mean and standard deviation of each feature over a train part, float64 (F,) each."""

    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def fit(cls, values: np.ndarray) -> "Scaler":
        """Fit on `values` (T, F). A feature that is constant there keeps its unit (std 1)."""
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by name in `_scaled`
            mean, std = values.mean(axis=0), values.std(axis=0)
        return cls(mean, np.where(std > 1e-12 * np.maximum(1.0, np.abs(mean)), std, 1.0))

    def apply(self, values: np.ndarray) -> np.ndarray:
        """(T, F) float64 -> (T, F) float32, centred, scaled, clipped to +-FEATURE_LIMIT."""
        return np.clip((values - self.mean) / self.std, -FEATURE_LIMIT, FEATURE_LIMIT).astype(np.float32)


class Splits(NamedTuple):
    """Three markets, one after another in time, with one scaler: that of the train part."""

    train: "Market"
    validation: "Market"
    test: "Market"


@dataclass(frozen=True, eq=False)
class Market:
    """Bars of one instrument with their features. Build it with `from_prices`, `load_prices`, `real` or `simulate`."""

    prices: pd.DataFrame  # (T, 5) float64 open high low close volume; UTC index "time", strictly increasing
    raw_features: np.ndarray  # (T, F) float64
    scaler: Scaler
    features: np.ndarray  # (T, F) float32, scaled, finite, within +-FEATURE_LIMIT
    feature_names: tuple[str, ...]
    name: str
    simulated: bool
    bars_per_year: float
    train: float  # share of the bars, from the start
    validation: float  # share of the bars that follows
    notices: tuple[str, ...] = ()
    process: dict[str, Any] | None = None  # parameters of the generator, where one made the prices

    def __len__(self) -> int:
        return len(self.prices)

    @property
    def close(self) -> np.ndarray:
        """Closing prices, (T,) float64."""
        return self.prices["close"].to_numpy()

    @property
    def time(self) -> pd.DatetimeIndex:
        """Times of the bars, (T,), UTC."""
        return self.prices.index  # type: ignore[return-value]

    def slice(self, start: int, stop: int) -> "Market":
        """Bars start..stop-1 with the same scaler; arrays are views."""
        return replace(
            self,
            prices=self.prices.iloc[start:stop],
            raw_features=self.raw_features[start:stop],
            features=self.features[start:stop],
        )

    def with_scaler(self, scaler: Scaler) -> "Market":
        """The same market scaled by `scaler`."""
        return replace(self, scaler=scaler, features=_scaled(self.raw_features, scaler, self.feature_names))

    def split(self) -> Splits:
        """Train, validation and test in time, by the shares `train` and `validation`."""
        first = round(len(self) * self.train)
        return self._cut(0, first, round(len(self) * (self.train + self.validation)), len(self))

    def walk_forward(self, folds: int = 4, *, expanding: bool = True) -> list[Splits]:
        """`folds` splits whose test parts follow one another; each scaler is fitted on its own train part.

        The bars are cut into folds + 2 equal pieces; fold k validates on piece k + 1 and tests on piece k + 2. It
        trains on all pieces before those, or with `expanding=False` on the one just before.
        """
        if folds < 1:
            raise PriceError(f"walk_forward(folds={folds}): at least one fold is needed")
        edge = [round(i * len(self) / (folds + 2)) for i in range(folds + 3)]
        result = []
        for k in range(folds):
            start = 0 if expanding else edge[k]
            scaler = Scaler.fit(self.raw_features[start : edge[k + 1]])
            result.append(self.with_scaler(scaler)._cut(start, edge[k + 1], edge[k + 2], edge[k + 3]))
        return result

    def _cut(self, *edges: int) -> Splits:
        if min(np.diff(edges)) < 2:
            raise PriceError(
                f"{self.name}: {len(self)} bars give parts of {np.diff(edges).tolist()} bars for train, validation and "
                "test; each needs at least 2. Use more bars, fewer folds, or other shares train= and validation="
            )
        return Splits(*(self.slice(a, b) for a, b in itertools.pairwise(edges)))

    def describe(self) -> str:
        """One paragraph: what the data is, bars a year, how it is split, what was mended."""
        edges = [0, round(len(self) * self.train), round(len(self) * (self.train + self.validation)), len(self)]
        kind = "simulated" if self.simulated else "as loaded"
        parts = ", ".join(
            f"{label} {b - a:,} from {self.time[a]:%Y-%m-%d %H:%M}"
            for label, a, b in zip(("train", "validation", "test"), edges[:-1], edges[1:], strict=True)
            if b > a
        )
        text = (
            f"{self.name} ({kind}): {len(self):,} bars, {self.time[0]:%Y-%m-%d %H:%M} to "
            f"{self.time[-1]:%Y-%m-%d %H:%M} UTC, {self.bars_per_year:,.1f} bars per year. Split in time: {parts}. "
            f"{len(self.feature_names)} features: {', '.join(self.feature_names)}."
        )
        return text + "".join(f" Note: {notice}." for notice in self.notices)


def from_prices(
    prices: pd.DataFrame,
    *,
    name: str,
    given: pd.DataFrame | None = None,
    features: FeatureFunction | None = None,
    train: float = 0.6,
    validation: float = 0.2,
    scaler: Scaler | None = None,
    simulated: bool = False,
    bars_per_year: float | None = None,
    notices: Sequence[str] = (),
    process: dict[str, Any] | None = None,
) -> Market:
    """Market of checked `prices` (open high low close volume, UTC index). For files, use `load_prices`.

    given: the reader's own feature columns, used beside the others. features: a function of the prices that replaces
    the standard features. scaler: a frozen one; else it is fitted on the first `train` share. bars_per_year: from the
    times unless given. Raises PriceError.
    """
    if not (0 < train <= 1 and 0 <= validation <= 1 and train + validation <= 1 + 1e-12):
        raise PriceError(f"train={train}, validation={validation}: shares of the bars, train > 0, sum at most 1")
    if len(prices) < 2:
        raise PriceError(f"{name}: {len(prices)} usable bars; at least 2 are needed")
    values, names, warm_up = combine(prices, given, features)
    if warm_up:
        notices = (*notices, f"dropped the first {warm_up} bars, where a given feature is not defined yet")
        prices, values = prices.iloc[warm_up:], values[warm_up:]
    if scaler is None:
        scaler = Scaler.fit(values[: max(1, round(len(values) * train))])
    scaled = _scaled(values, scaler, names)
    if bars_per_year is None:
        bars_per_year = count_bars_per_year(prices.index)
    return Market(
        prices,
        values,
        scaler,
        scaled,
        names,
        name,
        simulated,
        bars_per_year,
        train,
        validation,
        tuple(notices),
        process,
    )


def _scaled(values: np.ndarray, scaler: Scaler, names: tuple[str, ...]) -> np.ndarray:
    """Scale and check once, in float32, that every value is finite. (T, F)"""
    if not isinstance(scaler, Scaler):
        raise PriceError(f"scaler= takes a rlbench.market.Scaler, such as another market's .scaler, not {scaler!r}")
    if np.shape(scaler.mean) != (len(names),) or np.shape(scaler.std) != (len(names),):
        raise PriceError(f"scaler has shapes {np.shape(scaler.mean)}, {np.shape(scaler.std)} for {len(names)} features")
    usable = np.isfinite(scaler.mean) & np.isfinite(scaler.std) & (np.asarray(scaler.std) > 0)  # (F,)
    if not usable.all():
        raise PriceError(
            f"feature {names[int(usable.argmin())]!r} has no finite mean and standard deviation above zero to be scaled by; "
            "give the feature smaller values, or another scaler"
        )
    scaled = scaler.apply(values)
    if not np.isfinite(scaled).all():
        raise PriceError(f"feature {names[int(np.argwhere(~np.isfinite(scaled))[0, 1])]!r} is not finite after scaling")
    return scaled


def adjust(prices: pd.DataFrame, factor: np.ndarray) -> pd.DataFrame:
    """Multiply open, high, low, close by `factor` (T,) and divide the volume: the value traded stays the same."""
    adjusted = prices.mul(factor, axis=0)
    adjusted["volume"] = prices["volume"] / factor
    return adjusted


def real(ticker: str = "AAPL", *, features: FeatureFunction | None = None, scaler: Scaler | None = None) -> Market:
    """Real daily bars, adjusted for splits and dividends: AAPL, IBM, MSFT, GOOG or FB (see data/README.md).

    Raises PriceError when the ticker is not there, or when the package was installed without its data folder.
    """
    path = DATA / "stocks.csv.gz"
    if not path.is_file():
        raise PriceError(
            f"{path} is not there: the default prices lie in data/ of the repository. Install the package from a "
            "checkout with `pip install --no-deps -e .`, or load your own with rlbench.load_prices(file)"
        )
    table = pd.read_csv(path, parse_dates=["Date"])
    rows = table[table["Ticker"] == ticker]
    if rows.empty:
        raise PriceError(f"no ticker {ticker!r} in {path.name}; there are {', '.join(sorted(set(table['Ticker'])))}")
    index = pd.DatetimeIndex(rows["Date"], name="time").tz_localize("UTC")
    rows = rows.rename(columns=str.lower).set_index(index)
    prices = adjust(rows[list(COLUMNS)].astype(np.float64), (rows["adj close"] / rows["close"]).to_numpy())
    notice = "adjusted for splits and dividends by Adj Close / Close"
    return from_prices(prices, name=ticker, features=features, scaler=scaler, notices=(notice,))
