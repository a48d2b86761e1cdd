"""A trading env that computes its features at every step, from the bars up to that step, as it is often written.

A row of features needs the bars before it: trailing means carry the rounding of all of them. So the whole history is computed
again for one row, and a step costs the more the later it comes. `TradingEnv` reads the row from a table instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlbench.envs.trading import TradingEnv
from rlbench.features import compute
from rlbench.market import Market

COMPARED = 128  # bars: more than the longest trailing window


class RowsOnDemand:
    """Stands where an env keeps its table of features (T * F,): a slice of it is computed when it is asked for."""

    def __init__(self, market: Market, clip: float) -> None:
        self.prices, self.scaler, self.clip = market.prices, market.scaler, clip
        self.width = len(market.feature_names)  # F

    def __getitem__(self, part: slice) -> np.ndarray:  # (W * F,) float32
        first, last = part.start // self.width, part.stop // self.width
        rows = compute(self.prices.iloc[:last]).to_numpy()[first:]  # (W, F) float64
        return np.clip(self.scaler.apply(rows), -self.clip, self.clip).reshape(-1)


class PerStepFeatures(TradingEnv):
    """`TradingEnv`, whose features are computed at every step: the same numbers to the last bit."""

    equals_trading_env = True

    def _bind_market(self, clip: float, window: int) -> None:
        super()._bind_market(clip, window)
        self._flat: Any = RowsOnDemand(self.market, clip)


def why_not_again(market: Any) -> str | None:
    """The reason why a market's features cannot be computed again from its prices, or None where they can."""
    if not isinstance(market, Market):
        return f"the market is a {type(market).__name__} and its features are not known to come from its prices"
    head = compute(market.prices.iloc[:COMPARED])
    if tuple(head.columns) != tuple(market.feature_names):
        return f"the features of {market.name} were given with it, and how they are computed is not known"
    if not np.array_equal(head.to_numpy(), market.raw_features[:COMPARED]):
        return f"these bars of {market.name} are a later part, whose features need the bars before them"
    return None
