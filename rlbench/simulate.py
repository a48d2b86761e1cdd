"""Simulated markets: minute bars anchored to real days, and three processes whose best policy is known.

Every name says "simulated". Each call draws from its own numpy Generator, so it changes no global state and the same
seed gives the same bars.
"""

from itertools import accumulate

import numpy as np
import pandas as pd

from rlbench.features import FeatureFunction
from rlbench.market import Market, from_prices, real
from rlbench.prices.errors import PriceError

MINUTES = 390  # of a New York session, 09:30 to 16:00
STEPS = 4  # points simulated in a minute, from which its high and low come


def minutes(ticker: str = "AAPL", *, seed: int = 0, days: int | None = None) -> Market:
    """Simulated minute bars, 390 a day, that reach the open, high, low and close of each real day exactly.

    A Brownian bridge runs from the day's open to its close in log price; its part above both is stretched to touch
    the day's high, its part below both to touch the low. The day's volume is spread in a U shape. Bars are labelled by
    their start in New York's session, in UTC. days: the first so many only. 13 years give over 1.2 million bars.
    """
    daily = real(ticker).prices
    if days is not None:
        if not 1 <= days <= len(daily):
            raise PriceError(f"minutes(days={days}): {ticker} has 1 to {len(daily)} days")
        daily = daily.iloc[:days]
    rng = np.random.default_rng([seed, 1])
    day = {c: daily[c].to_numpy()[:, None] for c in daily.columns}  # (D, 1) each
    path = _anchored_path(rng, day)  # (D, MINUTES * STEPS + 1)
    close = path[:, STEPS::STEPS]  # (D, MINUTES)
    opens = path[:, :-1:STEPS]
    inner = path[:, 1:].reshape(len(path), MINUTES, STEPS)
    high = np.maximum(opens, inner.max(axis=2))
    low = np.minimum(opens, inner.min(axis=2))
    rows = np.arange(len(path))
    high[rows, high.argmax(axis=1)] = day["high"][:, 0]  # exact where the path stays inside or rounds
    low[rows, low.argmin(axis=1)] = day["low"][:, 0]
    middle = np.linspace(-1, 1, MINUTES)
    share = (1 + 2 * middle**2) * rng.lognormal(0.0, 0.5, (len(path), MINUTES))
    volume = day["volume"] * share / share.sum(axis=1, keepdims=True)
    columns = {"open": opens, "high": high, "low": low, "close": close, "volume": volume}
    prices = pd.DataFrame({c: v.reshape(-1) for c, v in columns.items()}, index=_session_times(daily.index))
    return from_prices(
        prices,
        name=f"{ticker} simulated minutes",
        simulated=True,
        notices=(f"simulated minutes anchored to the real days of {ticker}, seed {seed}",),
        process={"kind": "bridge", "ticker": ticker, "seed": seed},
    )


def _anchored_path(rng: np.random.Generator, day: dict[str, np.ndarray]) -> np.ndarray:
    """Prices along each day, (D, P + 1) with P = MINUTES * STEPS, first the open, last the close, within low..high."""
    points = MINUTES * STEPS
    steps = rng.standard_normal((len(day["open"]), points)) / np.sqrt(points)
    walk = np.concatenate([np.zeros_like(day["open"]), np.cumsum(steps, axis=1)], axis=1)
    time = np.linspace(0, 1, points + 1)
    start, end, top, bottom = (np.log(day[c]) for c in ("open", "close", "high", "low"))
    # The mean range of a Brownian bridge of unit variance is sqrt(pi / 2) (Feller 1951), hence this width.
    path = start + time * (end - start) + (walk - time * walk[:, -1:]) * (top - bottom) / np.sqrt(np.pi / 2)
    upper, lower = np.maximum(start, end), np.minimum(start, end)
    above, below = np.maximum(path - upper, 0), np.maximum(lower - path, 0)
    path = np.clip(path, lower, upper)
    for part, room, sign in ((above, top - upper, 1), (below, lower - bottom, -1)):
        reach = part.max(axis=1, keepdims=True)
        path += sign * part * np.divide(room, reach, out=np.zeros_like(room), where=reach > 0)
    prices = np.clip(np.exp(path), day["low"], day["high"])
    prices[:, :1], prices[:, -1:] = day["open"], day["close"]
    return prices


def _session_times(days: pd.DatetimeIndex) -> pd.DatetimeIndex:
    """UTC times of the minutes from 09:30 New York on each day, (D * MINUTES,)."""
    local = days.tz_localize(None) + pd.Timedelta(hours=9, minutes=30)
    starts = local.tz_localize("America/New_York").tz_convert("UTC").tz_localize(None).to_numpy("datetime64[s]")
    times = starts[:, None] + np.arange(MINUTES) * np.timedelta64(60, "s")
    return pd.DatetimeIndex(times.reshape(-1), name="time").tz_localize("UTC")


def _market(
    log_price: np.ndarray, name: str, process: dict, freq: str, features: FeatureFunction | None = None
) -> Market:
    """Bars from one log price a bar (T,): each opens at the close before, high and low are the larger and smaller."""
    close = np.exp(log_price)
    opens = np.concatenate([close[:1], close[:-1]])
    index = pd.date_range("2020-01-01", periods=len(close), freq=freq, tz="UTC", name="time")
    prices = pd.DataFrame(
        {
            "open": opens,
            "high": np.maximum(opens, close),
            "low": np.minimum(opens, close),
            "close": close,
            "volume": np.ones(len(close)),
        },
        index=index,
    )
    return from_prices(prices, name=name, features=features, simulated=True, process=process)


def _check(**values: tuple[float, float, float]) -> None:
    """Refuse a parameter outside its range: name=(value, smallest, largest)."""
    for name, (value, smallest, largest) in values.items():
        if not smallest <= value <= largest:
            raise PriceError(f"{name}={value}: accepted are {smallest} to {largest}")


def ornstein_uhlenbeck(
    bars: int = 20_000,
    *,
    seed: int = 0,
    mean: float = 100.0,
    reversion: float = 0.1,
    volatility: float = 0.01,
    freq: str = "1h",
) -> Market:
    """A mean-reverting price. With x = log price, m = log mean: x[t+1] = m + (1 - reversion)(x[t] - m) + volatility e[t].

    e are standard normal; the first x comes from the stationary distribution. The one feature, `deviation`, is
    (x - m) / stationary standard deviation: with the position held, all that the best causal policy needs. `process`
    holds kind, log_mean, phi = 1 - reversion, reversion, sigma = volatility, stationary_std.
    """
    _check(
        bars=(bars, 2, 10**8),
        mean=(mean, 1e-9, 1e12),
        reversion=(reversion, 1e-9, 1.0),
        volatility=(volatility, 1e-9, 1),
    )
    rng = np.random.default_rng([seed, 2])
    phi = 1.0 - reversion
    spread = volatility / np.sqrt(1.0 - phi**2)
    noise = (volatility * rng.standard_normal(bars - 1)).tolist()
    start = float(spread * rng.standard_normal())
    deviation = np.fromiter(accumulate(noise, lambda x, e: phi * x + e, initial=start), np.float64, bars)
    process = {
        "kind": "ornstein_uhlenbeck",
        "log_mean": float(np.log(mean)),
        "phi": phi,
        "reversion": reversion,
        "sigma": volatility,
        "stationary_std": float(spread),
        "seed": seed,
    }

    def deviation_feature(prices: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"deviation": (np.log(prices["close"]) - process["log_mean"]) / process["stationary_std"]})

    name = "simulated Ornstein-Uhlenbeck"
    return _market(process["log_mean"] + deviation, name, process, freq, deviation_feature)


def sine(
    bars: int = 20_000,
    *,
    seed: int = 0,
    mean: float = 100.0,
    amplitude: float = 0.05,
    period: float = 64.0,
    noise: float = 0.0,
    freq: str = "1h",
) -> Market:
    """log price = log mean + amplitude sin(angle), angle = 2 pi t / period + a start drawn from the seed, + noise e[t].

    The features `sine` and `cosine` are those of the angle, so the next move is known up to the noise. The best
    policy without fees is long while the cosine of the angle half a bar ahead is above zero, short while it is below.
    """
    _check(bars=(bars, 2, 10**8), mean=(mean, 1e-9, 1e12), amplitude=(amplitude, 1e-9, 5), period=(period, 2.5, 1e9))
    _check(noise=(noise, 0, 1))
    rng = np.random.default_rng([seed, 3])
    start = float(rng.uniform(0, 2 * np.pi))
    angle = 2 * np.pi * np.arange(bars) / period + start
    process = {"kind": "sine", "log_mean": float(np.log(mean)), "amplitude": amplitude, "period": period}
    process |= {"start": start, "noise": noise, "seed": seed}

    def phase(prices: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"sine": np.sin(angle), "cosine": np.cos(angle)}, index=prices.index)

    log_price = np.log(mean) + amplitude * np.sin(angle) + noise * rng.standard_normal(bars)
    return _market(log_price, "simulated sine", process, freq, phase)


def martingale(
    bars: int = 20_000,
    *,
    seed: int = 0,
    start: float = 100.0,
    volatility: float = 0.01,
    coin: bool = False,
    freq: str = "1h",
) -> Market:
    """A price with E[p[t+1] | p[..t]] = p[t]: no policy earns anything in simple return, before fees, on average.

    p[t+1] = p[t] exp(volatility e - volatility^2 / 2) with e standard normal, or with `coin` p[t] (1 +- volatility)
    with equal chance. In log return holding loses volatility^2 / 2 a bar, which is not a cost of the policy.
    """
    _check(bars=(bars, 2, 10**8), start=(start, 1e-9, 1e12), volatility=(volatility, 1e-9, 0.5))
    rng = np.random.default_rng([seed, 4])
    if coin:
        steps = np.log1p(np.where(rng.integers(0, 2, bars - 1) == 1, volatility, -volatility))
    else:
        steps = volatility * rng.standard_normal(bars - 1) - volatility**2 / 2
    log_price = np.log(start) + np.concatenate([[0.0], np.cumsum(steps)])
    process = {"kind": "martingale", "volatility": volatility, "coin": coin, "start": start, "seed": seed}
    return _market(log_price, "simulated martingale", process, freq)
