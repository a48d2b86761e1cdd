"""Environments, and what can be earned in them. Loaded on first use, so that importing rlbench needs no Gymnasium."""

from importlib import import_module
from typing import Any

_HOMES = {
    "BatchCartPole": "batch_cartpole",
    "BatchCartPoleEnv": "batch_cartpole_env",
    "BatchTrading": "batch_trading",
    "BatchTradingEnv": "batch_trading_env",
    "BatchVectorEnv": "batch_vector_env",
    "HashedStarts": "starts",
    "TradingEnv": "trading",
    "StepState": "history",
    "EnvError": "spaces",
    "IdBandit": "bandit",
    "MatchResult": "matches",
    "OneByOneGames": "one_by_one_games",
    "OneOthello": "othello_one",
    "Othello": "othello",
    "OthelloEnv": "othello_env",
    "opponent_named": "players",
    "play_match": "matches",
    "saved_player": "players",
    "OldStyle": "old_style",
    "best_equity": "optimum",
    "Optimum": "optimum",
    "best_causal_policy": "ou_optimum",
    "can_hash_starts": "starts",
    "OUPolicy": "ou_policy",
    "run_policy": "references",
}


_MODULES = ("othello", "games", "bandit", "players", "matches")  # used by their own name: rlbench.envs.othello.start()


def __getattr__(name: str) -> Any:
    """Import the module that holds `name` when it is first asked for."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(sorted(_HOMES))}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
