"""What a trained agent's return on a market is to be held against: doing nothing, buying once, chance, and the best."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rlbench.envs.optimum import best_equity
from rlbench.envs.ou_optimum import best_causal_policy
from rlbench.envs.trading import TradingEnv

if TYPE_CHECKING:
    from rlbench.market import Market

_WHOLE = {"episode_length": None, "random_start": False}


def run_policy(
    env: TradingEnv, choose: Callable[[np.ndarray], int], options: dict[str, Any] | None = None
) -> pd.DataFrame:
    """Play one episode of `env` by `choose` (observation (D,) to action); returns `env.history()`.

    `options` go to `reset`: `{"start": bar}` chooses the first bar.
    """
    observation, _ = env.reset(options=options)
    ended = False
    while not ended:
        observation, _, terminated, truncated, _ = env.step(choose(observation))
        ended = terminated or truncated
    return env.history()


def references(
    market: "Market", env_kwargs: Mapping[str, Any] | None = None, seed: int = 0, *, progress: bool | None = None
) -> pd.DataFrame:
    """Reference returns on one pass through all of `market`, with the costs of `TradingEnv(market, **env_kwargs)`.

    Rows: "always flat"; "buy and hold", which buys at the first close and keeps (position 1, whether or not the set has
    it); "random", a uniformly drawn action every bar, from `seed`; "best causal", on an Ornstein-Uhlenbeck market
    without borrow interest; "best in hindsight". Columns: equity (final over initial), log_return,
    log_return_per_bar, fills, share_of_hindsight (of log returns), and share_of_causal where that row exists.

    The pass begins at the first full window and has no episodes: `episode_length` and `random_start` are replaced.
    """
    kwargs = dict(env_kwargs or {}) | _WHOLE
    env = TradingEnv(market, **kwargs)
    generator = np.random.default_rng(seed)
    actions = len(env.positions)
    histories = {
        "always flat": run_policy(TradingEnv(market, **kwargs | {"positions": (0.0,)}), lambda _: 0),
        "buy and hold": run_policy(TradingEnv(market, **kwargs | {"positions": (1.0,)}), lambda _: 0),
        "random": run_policy(env, lambda _: int(generator.integers(actions))),
    }
    process = getattr(market, "process", None) or {}
    if process.get("kind") == "ornstein_uhlenbeck" and env.borrow_rate == 0.0:
        policy = best_causal_policy(process, env.positions, env.fee, env.slippage, progress=progress)
        histories["best causal"] = run_policy(env, lambda _: policy.act(env))
    rows = {name: summary(history) for name, history in histories.items()}
    rows["best in hindsight"] = _hindsight(env, progress)
    table = pd.DataFrame.from_dict(rows, orient="index")
    for column, best in (("share_of_causal", "best causal"), ("share_of_hindsight", "best in hindsight")):
        if best in table.index:
            table[column] = [share(value, table.loc[best, "log_return"]) for value in table["log_return"]]
    return table


def summary(history: pd.DataFrame) -> dict[str, float]:
    """Figures of one episode from `TradingEnv.history()`: equity ratio, log return in all and a bar, fills."""
    equity = history["equity"].to_numpy()
    ratio = float(equity[-1] / equity[0])
    bars = len(equity) - 1
    log_return = math.log(ratio)
    return {
        "equity": ratio,
        "log_return": log_return,
        "log_return_per_bar": log_return / bars,
        "fills": int(history["filled"].sum()),
    }


def share(log_return: float, best_log_return: float) -> float:
    """`log_return` as a share of the best one; NaN where nothing could be earned, so that there is nothing to share."""
    return log_return / best_log_return if best_log_return > 0.0 else math.nan


def _hindsight(env: TradingEnv, progress: bool | None) -> dict[str, float]:
    close = np.asarray(env.market.close)[env.window - 1 :]
    best = best_equity(close, env.positions, env.fee, env.borrow_rate, env.slippage, progress=progress)
    flat = env.positions.index(0.0) if 0.0 in env.positions else -1
    fills = int((np.diff(best.actions, prepend=flat) != 0).sum())
    bars = len(best.actions)
    return {
        "equity": best.equity,
        "log_return": best.log_equity,
        "log_return_per_bar": best.log_equity / bars,
        "fills": fills,
    }
