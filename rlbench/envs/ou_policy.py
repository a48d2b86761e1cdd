"""A policy for the Ornstein-Uhlenbeck market, as found by `best_causal_policy`: values on a grid, and how to act on them.

d is the log price since the position was entered. A position p then is worth 1 - p + p * exp(d) times its value at
entry, and its exposure has drifted to p * exp(d) over that.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rlbench.envs.trading import TradingEnv
    from rlbench.market import Market

RUIN = 1e-6  # the least an account counts as, of its value at entry


@dataclass(frozen=True)
class OUPolicy:
    """Which position to choose, given the deviation of the log price, the position held and its exposure."""

    positions: tuple[float, ...]
    costs: tuple[float, float]  # shares of the traded value lost in a purchase and in a sale
    log_mean: float  # of the price
    grid: np.ndarray  # (N,) deviations, even spacing
    hold: list[np.ndarray]  # P of (n, N): value of holding on, [entry deviation, deviation]; n is 1 without drift
    growth: float  # expected log growth a bar
    rounds: int  # of value iteration

    def action(self, deviation: float, held: int, exposure: float) -> int:
        """Index of the position to choose; `held` is -1 where none is. Beyond the grid its edge counts."""
        column, right = self._cell(deviation)
        best, choice = -math.inf, -1
        for position in range(len(self.positions)):
            table = self.hold[position]
            if position == held:
                row, down = self._cell(deviation - self._drift(held, exposure)) if len(table) > 1 else (0, 0.0)
                value = _between(table, row, down, column, right)
            elif len(table) > 1:
                value = (1.0 - right) * table[column, column] + right * table[column + 1, column + 1]
            else:
                value = _between(table, 0, 0.0, column, right)
            if position != held:
                value += float(switch_log_cost(np.array(exposure), self.positions[position], self.costs))
            if value > best + 1e-15:
                best, choice = value, position
        return choice

    def act(self, env: "TradingEnv") -> int:
        """The choice in the env's present state."""
        return self.action(math.log(env.price) - self.log_mean, env.held, env.exposure)

    def from_observation(self, market: "Market", feature: str = "deviation") -> Callable[..., int | np.ndarray]:
        """The policy as a function of a trading env's observations, to stand beside a trained agent.

        The function takes one observation (D,) and returns an action, or (N, D) and returns (N,) int64; a second
        argument, legal actions, may be None (all are legal). It reads the deviation from the last bar's `feature`,
        undoing the market's scaling, and the drift from the unrealised profit: exact up to float32, as long as the env
        charges no interest and clips nothing.
        """
        names = list(market.feature_names)
        column = names.index(feature) - len(names) - 2  # counted from the end, whatever the window
        scale, shift = float(market.scaler.std[names.index(feature)]), float(market.scaler.mean[names.index(feature)])
        spread = float(market.process["stationary_std"])

        def choose(observation: np.ndarray, mask: None = None) -> int | np.ndarray:
            if mask is not None:
                raise ValueError("mask is refused: all positions are legal; accepted: None.")
            if observation.ndim == 2:
                return np.array([choose(row) for row in observation], dtype=np.int64)
            deviation = (float(observation[column]) * scale + shift) * spread
            return self.action(deviation, *self._account(float(observation[-2]), float(observation[-1])))

        return choose

    def _account(self, position: float, profit: float) -> tuple[int, float]:
        """Index held and exposure, from the target position and the unrealised profit since its fill."""
        held = int(np.argmin([abs(position - target) for target in self.positions]))
        if abs(position - self.positions[held]) > 1e-6:
            return -1, 0.0  # flat before the first choice, in a set without flat
        target = self.positions[held]
        # Equity is 1 + profit times that at entry, of which 1 - target is cash and the rest shares.
        return held, (profit + target) / (1.0 + profit) if profit > -1.0 else target

    def _cell(self, deviation: float) -> tuple[int, float]:
        """Grid cell of a deviation, and how far into it, in [0, 1]."""
        step = (self.grid[-1] - self.grid[0]) / (len(self.grid) - 1)
        place = min(max((deviation - self.grid[0]) / step, 0.0), len(self.grid) - 1.0)
        cell = min(int(place), len(self.grid) - 2)
        return cell, float(place - cell)

    def _drift(self, held: int, exposure: float) -> float:
        """Log price since entry, from what the exposure has drifted to."""
        target = self.positions[held]
        ratio = exposure * (1.0 - target) / (target * (1.0 - exposure))
        return math.log(ratio) if ratio > 0.0 else 0.0


def held_value(target: float, drift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Value of a position entered at value 1 after the log price has moved by `drift`, and its exposure then."""
    shares = target * np.exp(drift)
    value = np.maximum(1.0 - target + shares, RUIN)
    return value, shares / value


def switch_log_cost(exposure: np.ndarray, target: float, costs: tuple[float, float]) -> np.ndarray:
    """Log of the share of equity left after going from `exposure` to `target`, as `portfolio.rebalance` solves it."""
    buy, sell = costs
    bought = (1.0 - buy + buy * exposure) / max(1.0 - buy + buy * target, RUIN)
    sold = (1.0 - sell * exposure) / max(1.0 - sell * target, RUIN)
    return np.log(np.maximum(np.where(target > exposure, bought, sold), RUIN))


def _between(table: np.ndarray, row: int, down: float, column: int, right: float) -> float:
    """Bilinear interpolation in `table`; a table of one row is the same for all entries."""
    below = min(row + 1, len(table) - 1)
    upper = (1.0 - right) * table[row, column] + right * table[row, column + 1]
    lower = (1.0 - right) * table[below, column] + right * table[below, column + 1]
    return float((1.0 - down) * upper + down * lower)
