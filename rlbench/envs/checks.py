"""Checks of the trading env's arguments: one clear error that names the argument, the value and what is accepted."""

import math
from collections.abc import Sequence

import numpy as np


def check_market(market: object) -> None:
    """ValueError unless `market` has closes and features."""
    for attribute in ("close", "features"):
        if not hasattr(market, attribute):
            kind = type(market).__name__
            raise ValueError(f"market is a {kind} without .{attribute}; accepted: what rlbench.load_prices returns.")


def check_choice(name: str, value: object, accepted: tuple) -> None:
    """ValueError naming `name` unless `value` is one of `accepted` (1 is not True here)."""
    if not any(value is choice for choice in accepted):
        raise ValueError(f"{name}={value!r} is refused; accepted: {' or '.join(map(repr, accepted))}.")


def check_function(name: str, value: object) -> None:
    """ValueError naming `name` unless `value` is None or can be called."""
    if value is not None and not callable(value):
        raise ValueError(f"{name}={value!r} is refused; accepted: None or a function.")


def checked_positions(positions: Sequence[float]) -> tuple[float, ...]:
    """The position set as floats: at least one, finite, no two equal; otherwise ValueError."""
    accepted = "accepted: a sequence of different finite numbers, for example (-1, 0, 1) for short, flat, long"
    try:
        values = tuple(float(position) for position in positions)
    except (TypeError, ValueError) as error:
        raise ValueError(f"positions={positions!r} is not a set of positions; {accepted}.") from error
    if not values or len(set(values)) != len(values) or not all(math.isfinite(value) for value in values):
        raise ValueError(f"positions={positions!r} is not a set of positions; {accepted}.")
    return values


def checked_rate(name: str, value: float, *, below: float = 1.0) -> float:
    """A share in [0, below), as a float; otherwise ValueError naming `name`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not 0.0 <= number < below:  # NaN fails the comparison as well
        raise ValueError(f"{name}={value!r} is refused; accepted: a number from 0 up to, not including, {below:g}.")
    return number


def checked_positive(name: str, value: float) -> float:
    """A finite number above zero, as a float; otherwise ValueError naming `name`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not (number > 0.0 and math.isfinite(number)):
        raise ValueError(f"{name}={value!r} is refused; accepted: a finite number above 0.")
    return number


def checked_count(name: str, value: int, *, most: int, why: str, least: int = 1) -> int:
    """A whole number from `least` to `most`; otherwise ValueError naming `name` and `why` the limit is what it is."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise ValueError(f"{name}={value!r} is refused; accepted: a whole number from {least} to {most} ({why}).")
    return int(value)


def checked_reward(value: object, bar: int) -> float:
    """What a custom reward function gave at `bar`, as a float; ValueError unless it is a finite number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"reward= returned {value!r} at bar {bar}; accepted: a finite number.")
    return number


def checked_close(close: object, name: str = "market.close") -> np.ndarray:  # (T,)
    """Closing prices as contiguous float64 (T,), finite and above zero; otherwise ValueError naming `name`."""
    try:
        prices = np.ascontiguousarray(close, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers ({error}); accepted: shape (T,).") from error
    if prices.ndim != 1 or len(prices) < 2:
        raise ValueError(f"{name} has shape {prices.shape}; accepted: (T,) with at least 2 bars.")
    wrong = ~(np.isfinite(prices) & (prices > 0.0))
    if wrong.any():
        bar = int(np.argmax(wrong))
        raise ValueError(f"{name}[{bar}] is {prices[bar]}; accepted: finite prices above 0. Drop or mend that bar.")
    return prices


def checked_features(features: object, bars: int) -> np.ndarray:  # (T, F)
    """Features as contiguous float32 (T, F) with a row a bar, all finite; otherwise ValueError."""
    try:
        values = np.ascontiguousarray(features, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"market.features is not an array of numbers ({error}); accepted: shape (T, F).") from error
    if values.ndim != 2 or len(values) != bars:
        raise ValueError(f"market.features has shape {values.shape}; accepted: ({bars}, F), a row for each close.")
    finite = np.isfinite(values)
    if not finite.all():
        bar, column = (int(index) for index in np.argwhere(~finite)[0])
        raise ValueError(f"market.features[{bar}, {column}] is {values[bar, column]}; accepted: finite numbers.")
    return values
