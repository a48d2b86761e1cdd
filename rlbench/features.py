"""Features of a market, each computed from this bar and earlier ones only, once, for all bars together.

Every feature is a ratio, so prices in cents or in thousands look alike. Returns are divided by the trailing
volatility, so a calm market and a wild one look alike too. Early bars use the bars there are (windows grow up to
their full length), so no row is missing and none is NaN.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from rlbench.prices.errors import PriceError

FeatureFunction = Callable[[pd.DataFrame], "pd.DataFrame | pd.Series | np.ndarray"]

HORIZONS = (1, 5, 20, 60)  # bars
VOLATILITY_WINDOW = 60  # bars
AVERAGE_WINDOW = 20  # bars
RSI_WINDOW = 14  # bars
SMALLEST_VOLATILITY = 1e-8  # log return a bar; keeps constant prices from dividing by zero


def _trailing_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Mean of the last `window` values, or of all so far where there are fewer. (T,) -> (T,)"""
    return pd.Series(values).rolling(window, min_periods=1).mean().to_numpy()


def _volatility(returns: np.ndarray, window: int) -> np.ndarray:
    """Root mean square log return a bar over the trailing window, never below SMALLEST_VOLATILITY. (T,)"""
    return np.sqrt(np.maximum(_trailing_mean(returns**2, window), SMALLEST_VOLATILITY**2))


def _relative(numerator: np.ndarray, denominator: np.ndarray, otherwise: float) -> np.ndarray:
    """numerator / denominator where the denominator is above zero, `otherwise` elsewhere. (T,)"""
    result = np.full(len(numerator), otherwise)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def _against_usual(values: np.ndarray) -> np.ndarray:
    """log((1 + value / trailing mean) / 2) for values >= 0: 0 at the mean, and where all so far are 0. (T,)"""
    # Trailing sums can leave a rounding residue after a huge value; a mean of n values is never below value / n.
    usual = np.maximum(_trailing_mean(values, AVERAGE_WINDOW), values / AVERAGE_WINDOW)
    return np.log1p(_relative(values, usual, 1.0)) - np.log(2.0)


def compute(prices: pd.DataFrame) -> pd.DataFrame:
    """The standard features of `prices` (open, high, low, close, volume), (T, 10) float64, finite in every row.

    return_1, _5, _20, _60: log return over so many bars / (trailing volatility * sqrt of the bars)
    range                 : log of (1 + log(high / low) / its trailing mean), less log 2: 0 at the usual range
    close_in_range        : where the close lies between low (-1) and high (+1); 0 where high equals low
    volume                : log of (1 + volume / its trailing mean), less log 2: 0 at the usual volume
    from_average          : log(close / mean of 20 closes) / (trailing volatility * sqrt 20)
    rsi                   : (gains - losses) / (gains + losses) over 14 bars: Wilder's RSI / 50 - 1, simple means
    volatility            : log of 10-bar over 60-bar volatility
    """
    high, low, close, volume = (prices[c].to_numpy(np.float64) for c in ("high", "low", "close", "volume"))
    log_close = np.log(close)
    returns = np.diff(log_close, prepend=log_close[:1])  # (T,)
    spread = _volatility(returns, VOLATILITY_WINDOW)
    columns = {}
    bar = np.arange(len(close))
    for horizon in HORIZONS:
        start = np.maximum(bar - horizon, 0)
        columns[f"return_{horizon}"] = (log_close - log_close[start]) / (spread * np.sqrt(np.maximum(bar - start, 1)))
    columns["range"] = _against_usual(np.log(high / low))
    columns["close_in_range"] = _relative(2 * close - high - low, high - low, 0.0)
    columns["volume"] = _against_usual(volume)
    average = _trailing_mean(close, AVERAGE_WINDOW)
    columns["from_average"] = np.log(close / average) / (spread * np.sqrt(AVERAGE_WINDOW))
    gains = np.maximum(_trailing_mean(np.maximum(returns, 0), RSI_WINDOW), 0)
    losses = np.maximum(_trailing_mean(np.maximum(-returns, 0), RSI_WINDOW), 0)
    columns["rsi"] = _relative(gains - losses, gains + losses, 0.0)
    columns["volatility"] = np.log(_volatility(returns, 10) / spread)
    return pd.DataFrame(columns, index=prices.index)


def apply_function(function: FeatureFunction, prices: pd.DataFrame) -> pd.DataFrame:
    """Call a reader's feature function on a copy of `prices` and check what it returns: one row a bar, numbers."""
    result = function(prices.copy())
    name = getattr(function, "__name__", "features")
    if isinstance(result, pd.Series):
        result = result.to_frame(name if result.name is None else result.name)
    if not isinstance(result, pd.DataFrame):
        values = np.asarray(result)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2:
            raise PriceError(f"features={name} returned shape {values.shape}; expected ({len(prices)}, F)")
        result = pd.DataFrame(values, columns=[f"{name}_{i}" for i in range(values.shape[1])])
    if len(result) != len(prices):
        raise PriceError(f"features={name} returned {len(result)} rows for {len(prices)} bars; return one row a bar")
    if result.shape[1] == 0:
        raise PriceError(f"features={name} returned no column; return at least one")
    if isinstance(result.index, pd.DatetimeIndex) and not result.index.equals(prices.index):
        raise PriceError(f"features={name} returned rows in another order than the bars; keep the index of the prices")
    try:
        values = result.to_numpy(np.float64)
    except (TypeError, ValueError) as error:
        raise PriceError(f"features={name} returned values that are not numbers: {error}") from None
    return pd.DataFrame(values, columns=[str(c) for c in result.columns], index=prices.index)


def combine(
    prices: pd.DataFrame, given: pd.DataFrame | None, function: FeatureFunction | None
) -> tuple[np.ndarray, tuple[str, ...], int]:
    """All features of a market: ours (or those of `function`), then the reader's `feature_*` columns.

    Returns the values (T, F) float64, their names, and the number of leading rows to drop because a feature of the
    reader's is not defined there yet. An undefined value later on is refused with its date.
    """
    own = (
        compute(prices)
        if function is None
        else apply_function(function, prices if given is None else prices.join(given))
    )
    table = own if given is None else pd.concat([own, given], axis=1)
    names = tuple(str(c) for c in table.columns)
    if len(set(names)) != len(names):
        raise PriceError(f"two features have one name: {sorted({n for n in names if names.count(n) > 1})}; rename one")
    values = table.to_numpy(np.float64)
    bad = ~np.isfinite(values)
    warm_up = int(np.max(np.where(bad.all(axis=0), len(values), np.argmin(bad, axis=0)), initial=0))
    late = np.argwhere(bad[warm_up:])
    if warm_up > len(values) // 2 or len(late):
        row, column = (late[0] + (warm_up, 0)) if len(late) else (0, int(np.argmax(bad.sum(axis=0))))
        raise PriceError(
            f"feature {names[column]!r} is {values[row, column]} at bar {row} ({prices.index[row]}); every feature must "
            "be a finite number (only a warm-up at the start, at most half of the bars, may be NaN): fill or drop it"
        )
    return values, names, warm_up


def check_causal(features: FeatureFunction, prices: pd.DataFrame, *, cuts: int = 5, seed: int = 0) -> None:
    """Raise PriceError if a feature row changes when only later bars change, that is, if it looks ahead.

    At `cuts` places the later bars are replaced by scaled ones, and every earlier row must stay bit-identical.
    It costs `cuts` + 1 calls of `features`; a function that uses random numbers fails too.
    """
    before = apply_function(features, prices)
    rng = np.random.default_rng(seed)
    for cut in np.unique(np.linspace(1, len(prices) - 1, cuts).astype(int)):
        changed = prices.copy()
        factor = np.exp(rng.normal(0.5, 0.5, len(prices) - cut))
        for column in prices.columns:
            changed[column] = np.concatenate(
                [prices[column].to_numpy()[:cut], prices[column].to_numpy()[cut:] * factor]
            )
        after = apply_function(features, changed)
        same = (before.to_numpy()[:cut] == after.to_numpy()[:cut]) | (before.isna() & after.isna()).to_numpy()[:cut]
        if not same.all():
            row, column = np.argwhere(~same)[0]
            raise PriceError(
                f"feature {before.columns[column]!r} looks ahead: its row {row} ({prices.index[row]}) changes when only "
                f"bars from row {cut} on change; use this bar and earlier ones (shift by positive numbers, no centred "
                "windows, no mean over all rows)"
            )
