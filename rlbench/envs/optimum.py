"""The best equity that any sequence of actions could have reached on a price path, known only in hindsight.

Dynamic programming, exact. Holdings stay constant while a position is held, so its exposure depends on the price it was
entered at: the state is (position, entry bar), and its value on a later bar is a straight line in the price,
`cash + shares * price`. Equity only scales these lines, so of all ways to enter position q at bar j the one with most
equity is best for every future, and each bar adds one line a position.

Lines that can never win again are dropped (see `_survivors`); that is what keeps a bar at a handful of lines instead of
one for every bar before it, and it loses nothing.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlbench.envs.checks import checked_close, checked_positions, checked_rate
from rlbench.envs.portfolio import FLOOR, trade_costs

_ROOM, _GROWTH = 32, 2  # lines are weeded out when there are more than _ROOM + _GROWTH * those kept last time


class Optimum(NamedTuple):
    """Final over initial equity, its logarithm (finite also where the ratio overflows), and actions that reach it."""

    equity: float
    log_equity: float
    actions: np.ndarray  # (T - 1,) int64, indices into positions; shorter if every course ends in bankruptcy


class _Lines(NamedTuple):
    """What is held along each course still in the race."""

    position: np.ndarray  # (L,) index into positions
    entry: np.ndarray  # (L,) bar of the fill
    shares: np.ndarray  # (L,)
    cash: np.ndarray  # (L,)

    def take(self, which: np.ndarray) -> "_Lines":
        return _Lines(*(field[which] for field in self))


def best_equity(
    close: np.ndarray,
    positions: Sequence[float] = (-1, 0, 1),
    fee: float = 1e-4,
    borrow_rate: float = 0.0,
    slippage: float = 0.0,
    *,
    progress: bool | None = None,
) -> Optimum:
    """Best final equity over all action sequences on `close` (T,), starting flat, with the trading env's accounting.

    Arguments as in `TradingEnv`; a bad one is refused with a ValueError that names it. Time is near to proportional to
    T, memory 8 bytes * T * positions. `progress` None shows a bar on a terminal once it takes over two seconds.
    """
    prices, targets = checked_close(close, "close"), np.array(checked_positions(positions))  # (T,), (P,)
    rate = checked_rate("borrow_rate", borrow_rate)
    costs = trade_costs(checked_rate("fee", fee), checked_rate("slippage", slippage))
    low, high = _future_range(prices, rate, costs)
    before = np.full((2, len(prices), len(targets)), -1, dtype=np.int32)  # entry bar and position of the course left
    lines = _enter(np.zeros(0, dtype=np.int64), _cash_only(), targets, prices[0], costs, 0, before)
    log_scale, floor, room = 0.0, FLOOR, _ROOM
    for bar in _bars(len(prices), progress):
        last, lines = lines, _age(lines, prices[bar], rate)
        equity = lines.cash + lines.shares * prices[bar]  # (L,)
        alive = equity > floor
        if not alive.any():
            return Optimum(FLOOR, math.log(FLOOR), _trace(before, last.entry[0], last.position[0], bar))
        lines, equity = lines.take(alive), equity[alive]
        if bar == len(prices) - 1:
            break
        new = _enter(lines.position, lines, targets, prices[bar], costs, bar, before)
        lines = _Lines(*(np.concatenate(pair) for pair in zip(lines, new, strict=True)))
        if len(lines.cash) > room:
            lines = lines.take(_survivors(lines, targets, low[bar], high[bar]))
            room = _ROOM + _GROWTH * len(lines.cash)
        if (top := equity.max()) > 1e100:  # keep far from overflow
            lines = lines._replace(shares=lines.shares / top, cash=lines.cash / top)
            log_scale, floor = log_scale + math.log(top), floor / top
    best = int(np.argmax(equity))
    return _optimum(float(equity[best]), log_scale, _trace(before, lines.entry[best], lines.position[best], bar))


def _optimum(equity: float, log_scale: float, actions: np.ndarray) -> Optimum:
    """`equity` was divided by exp(log_scale) on the way; an unscaled one keeps all its digits."""
    log_equity = log_scale + math.log(equity)
    if log_scale > 0.0:
        equity = math.exp(log_equity) if log_equity < 709.0 else math.inf
    return Optimum(equity, log_equity, actions)


def _cash_only() -> _Lines:
    """The account before the first choice: all in cash, no position of the set held yet."""
    return _Lines(np.array([-1]), np.array([-1]), np.zeros(1), np.ones(1))


def _bars(count: int, progress: bool | None):  # iterator over 1 .. count - 1
    from tqdm import tqdm

    disable = None if progress is None else not progress
    return tqdm(range(1, count), desc="best equity in hindsight", unit="bar", disable=disable, delay=2.0, leave=False)


def _age(lines: _Lines, close: float, rate: float) -> _Lines:
    """Charge one bar's interest on what is borrowed."""
    if rate == 0.0:
        return lines
    owed = rate * (np.maximum(-lines.shares * close, 0.0) + np.maximum(-lines.cash, 0.0))
    return lines._replace(cash=lines.cash - owed)


def _enter(
    held: np.ndarray,
    lines: _Lines,
    targets: np.ndarray,
    close: float,
    costs: tuple[float, float],
    bar: int,
    before: np.ndarray,
) -> _Lines:
    """For every position the best way to enter it at this bar, if any; notes in `before` where it came from.

    The equity after a fill is that of `portfolio.rebalance`, solved for the equity.
    """
    buy, sell = costs
    value = lines.shares * close  # (L,)
    equity = lines.cash + value  # (L,)
    target = targets[:, None]  # (P, 1)
    buys = target * equity > value  # (P, L)
    numerator = np.where(buys, equity * (1.0 - buy) + buy * value, equity - sell * value)
    divisor = np.where(buys, 1.0 - buy + buy * target, 1.0 - sell * target)
    after = np.where(divisor > 0.0, numerator / np.where(divisor > 0.0, divisor, 1.0), -1.0)  # (P, L)
    if len(held):
        after[held, np.arange(len(held))] = -1.0  # choosing the position already held does not trade
    best = after.argmax(axis=1)  # (P,)
    equity = after[np.arange(len(targets)), best]
    entered = np.flatnonzero(equity > 0.0)
    before[0, bar, entered] = lines.entry[best[entered]]
    before[1, bar, entered] = lines.position[best[entered]]
    equity, kept = equity[entered], targets[entered]
    return _Lines(entered, np.full(len(entered), bar), kept * equity / close, (1.0 - kept) * equity)


def _future_range(prices: np.ndarray, rate: float, costs: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (T,), (T,) on the prices at which a line can be valued from each bar on.

    A course left for another position is worth a positive multiple of `cash + shares * x` with x between
    price * (1 - sell_cost) and price / (1 - buy_cost). Interest moves all lines of one position alike: of a short, by
    rate * (sum of the closes) more in x; of a leveraged long, by at most (1 + rate) a bar less in x.
    """
    buy, sell = costs
    low = np.minimum.accumulate(prices[::-1])[::-1] * (1.0 - sell)
    high = np.maximum.accumulate(prices[::-1])[::-1] / (1.0 - buy)
    if rate > 0.0:
        remaining = np.arange(len(prices))[::-1]
        low = low * np.exp(-remaining * math.log1p(rate))
        high = high + rate * np.cumsum(prices[::-1])[::-1]
    return low, high


def _survivors(lines: _Lines, targets: np.ndarray, low: float, high: float) -> np.ndarray:
    """Indices of the lines that no other line of the same position beats at every price still to come.

    Straight lines are compared at two ends. A short is worth nothing from cash / -shares upward, a leveraged long below
    -cash / shares; only the prices at which a line is still worth something count, so at that end the line that lasts
    longer wins, and among those that last throughout, the one worth more. A beaten line cannot outlive its winner,
    which is why bankruptcy changes nothing.
    """
    kept = []
    for position, target in enumerate(targets):
        which = np.flatnonzero(lines.position == position)
        shares, cash = lines.shares[which], lines.cash[which]
        # The safe end is the one at which the position is worth most, the far end where it may be worth nothing.
        safe, far = (low, high) if target < 0.0 else (high, low)
        at_safe, at_far = cash + shares * safe, cash + shares * far
        with np.errstate(divide="ignore", invalid="ignore"):
            zero = cash / -shares
        lasts = -1.0 / zero if target < 0.0 else -zero
        key = np.where(at_far > 0.0, at_far, lasts)
        order = np.lexsort((-key, -at_safe))
        ahead = np.concatenate(([-np.inf], np.maximum.accumulate(key[order])[:-1]))
        kept.append(which[order[key[order] > ahead]])
    return np.sort(np.concatenate(kept))


def _trace(before: np.ndarray, entry: int, position: int, end: int) -> np.ndarray:  # (end,) int64
    """Actions of the course that entered `position` at bar `entry` and held it to bar `end`."""
    actions = np.empty(end, dtype=np.int64)
    while end > 0:
        actions[entry:end] = position
        end = int(entry)
        entry, position = before[0, end, position], before[1, end, position]
    return actions
