"""Gym-Trading-Env, told to trade what our env trades.

Equal: prices, features, positions, fee, a flat start at a random bar, steps of an episode, log rewards, and two numbers of an
observation that tell of the account. Its class is used as it is, without what `gymnasium.make` wraps around it, which would
make it slower.
"""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd

from rlbench.envs.trading import TradingEnv
from rlbench.market import Market

PACKAGE = "gym-trading-env"


def peer_frame(market: Market) -> pd.DataFrame:
    """Prices and features (T, 4 + F) under the names that it looks for.

    Without a time zone: pandas would warn of one at every step, which takes time.
    """
    prices = market.prices[["open", "high", "low", "close"]].tz_localize(None)
    named = [f"feature_{name}" for name in market.feature_names]
    features = pd.DataFrame(market.features, columns=named, index=prices.index)
    return pd.concat([prices, features], axis=1)


def peer_like(env: TradingEnv) -> Any:
    """Its env for the market and the settings of ours.

    Raises:
        ValueError: for settings that it has no equal for.
    """
    if env.window != 1 or env.slippage or env.borrow_rate or env.reward_function or env.episode_length is None:
        raise ValueError("accepted: window=1, no slippage, no interest, log rewards, and a fixed episode_length.")
    with warnings.catch_warnings():  # on import it makes every warning an error
        from gym_trading_env.environments import TradingEnv as PeerEnv
    return PeerEnv(
        df=peer_frame(env.market),
        positions=list(env.positions),
        trading_fees=env.fee,
        initial_position=0,
        max_episode_duration=env.episode_length + 1,  # it counts observations: one more than steps
        verbose=0,
    )
