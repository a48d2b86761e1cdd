"""Prices and features of one or many tickers as tensors on the device, one after another, and where episodes may lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlbench.envs import checks


class MarketTensors(NamedTuple):
    """K tickers with T bars in all. Bars are counted through; an account never leaves its ticker's part."""

    close: Tensor  # (T,) float64
    features: Tensor  # (T, F) float32, clipped to the observation's bounds
    first_start: Tensor  # (K,) int64: the first bar at which an episode may start
    num_starts: Tensor  # (K,) int64: how many bars from there on may be a start
    last_bar: Tensor  # (K,) int64


def market_tensors(
    markets: Sequence[Any], window: int, episode_length: int | None, clip: float, device: torch.device
) -> MarketTensors:
    """The tensors of markets that have `close` and `features`.

    Raises:
        ValueError: naming the argument, for a market too short for window and episode, or with other features than the first.
    """
    closes, features, starts, counts, lasts, offset = [], [], [], [], [], 0
    for number, market in enumerate(markets):
        checks.check_market(market)
        close = checks.checked_close(market.close)
        bars = len(close)
        wide = checks.checked_features(market.features, bars)
        if features and wide.shape[1] != features[0].shape[1]:
            raise ValueError(
                f"markets[{number}] has {wide.shape[1]} features, markets[0] {features[0].shape[1]}: give all the same."
            )
        why = f"markets[{number}] has {bars} bars, and a step needs one after the window"
        checks.checked_count("window", window, most=bars - 1, why=why)
        if episode_length is not None:
            checks.checked_count("episode_length", episode_length, most=bars - window, why=why)
        closes.append(close)
        features.append(np.clip(wide, -clip, clip))
        starts.append(offset + window - 1)
        counts.append(bars - 1 - (episode_length or 1) - (window - 1) + 1)
        lasts.append(offset + bars - 1)
        offset += bars

    def whole(values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    return MarketTensors(
        torch.from_numpy(np.concatenate(closes)).to(device),
        torch.from_numpy(np.concatenate(features)).to(device),
        whole(starts),
        whole(counts),
        whole(lasts),
    )
