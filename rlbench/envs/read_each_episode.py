"""A trading env that reads its prices from a file and builds its features anew at every reset, as it is often written."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rlbench.envs.per_step_features import PerStepFeatures
from rlbench.envs.trading import TradingEnv
from rlbench.features import compute
from rlbench.market import Market

# Before 3.1 pandas read the last digits of a float exactly only when asked to; since then it does, and warns of being asked.
EXACTLY = {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}


class PriceFile:
    """The bars of a market in a CSV file that lives as long as this object in the process that wrote it."""

    def __init__(self, market: Market) -> None:
        self._folder: Any = tempfile.TemporaryDirectory(prefix="rlbench-prices-")
        self.path = Path(self._folder.name) / "prices.csv"
        market.prices.to_csv(self.path)

    def read(self) -> pd.DataFrame:
        """The bars, to the last bit."""
        return pd.read_csv(self.path, index_col="time", parse_dates=True, **EXACTLY)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_folder": None}  # another process reads; this one deletes

    def __deepcopy__(self, memo: dict[int, Any]) -> PriceFile:
        return self


class ReadEachEpisode(TradingEnv):
    """`TradingEnv` on a market that is read from `file` at every reset: the same numbers to the last bit."""

    equals_trading_env = True

    def __init__(self, file: PriceFile, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._file = file

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        self.market = self._rebuilt(self._file.read())
        self._bind_market(self._clip, self.window)
        return super().reset(seed=seed, options=options)

    def _rebuilt(self, prices: pd.DataFrame) -> Market:
        values = compute(prices).to_numpy()  # (T, F)
        return replace(self.market, prices=prices, raw_features=values, features=self.market.scaler.apply(values))


class ReadAndComputePerStep(ReadEachEpisode, PerStepFeatures):
    """Both: prices are read at every reset, features computed at every step."""

    equals_trading_env = True

    def _rebuilt(self, prices: pd.DataFrame) -> Market:
        return replace(self.market, prices=prices)  # the table of features is asked for nothing
