"""Named workloads: from a name and perhaps prices to envs for training, evaluation and test, and settings that suit.

A market is split in time. Training sees the train part alone; evaluations, which may guide choices, see the validation
part; the test part is for one look at the end.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlbench.config import DQNConfig, PPOConfig
from rlbench.envs.factories import ById, Given, TradingFactory
from rlbench.envs.make import MakeEnv, factory_of
from rlbench.envs.spaces import EnvError
from rlbench.trainers.evaluate import evaluate

if TYPE_CHECKING:
    from rlbench.market import Market, Splits

TRADING = ("trading", "rlbench/Trading-v0")
SIMULATED = ("minutes", "ou", "sine", "martingale")
CONFIGS: dict[str, Any] = {"dqn": DQNConfig, "ppo": PPOConfig}  # by trainer
PRESET_OF = {
    "CartPole-v0": "cartpole",
    "CartPole-v1": "cartpole",
    "trading": "trading",
}  # where a trainer has that preset
# By name, the board's size and the most random plies before a game of training: positions that neither side would choose make the
# policy sound against those who do. The bandit has neither.
GAMES = {"othello": (8, 40), "othello6": (6, 20), "othello4": (4, 4), "bandit": None}
GAME_PRESET_OF = {"othello": "othello", "othello6": "othello", "othello4": "othello4", "bandit": "bandit"}


@dataclass(frozen=True)
class Workload:
    """What a trainer is given, and what goes with it.

    Attributes:
        name: as the reader wrote it.
        env: a factory of training envs, or the rules of a game.
        eval_env: a factory of evaluation envs, on the validation part of a market; None where `env` serves.
        preset: the name of the settings that suit, a key of the trainer's presets, if it has one of that name.
        test_env: a factory of envs on the test part of a market; None without one.
        splits: the parts of the market; None without one.
    """

    name: str
    env: Any
    eval_env: MakeEnv | None = None
    preset: str = "default"
    test_env: MakeEnv | None = None
    splits: Splits | None = None

    def preset_for(self, trainer: str = "dqn") -> str:
        """The name of the settings of a trainer that suit."""
        return self.preset if self.preset in CONFIGS[trainer].PRESETS else "default"

    def config(self, preset: str | None = None, trainer: str = "dqn", **changes: Any) -> Any:
        """Settings of a trainer by `preset` (this workload's own where left out), with some changed."""
        return CONFIGS[trainer].preset(preset or self.preset_for(trainer), **changes)

    def test(self, policy: Callable, episodes: int, seed: int) -> dict[str, Any] | None:
        """Mean return of `policy` on the test part, and of buy-and-hold on the very same episodes; None without one.

        `policy` maps observations (N, D) and masks to actions (N,) int64. Buy-and-hold is None where no position is 1.
        """
        if self.test_env is None or episodes < 1:
            return None
        result: dict[str, Any] = {"episodes": episodes, "mean_return": _mean(policy, self.test_env, episodes, seed)}
        positions = list(getattr(self.test_env().unwrapped, "positions", ()))
        result["buy_and_hold"] = None
        if 1.0 in positions:
            action = positions.index(1.0)
            hold = lambda obs, mask: np.full(len(obs), action, np.int64)  # noqa: E731
            result["buy_and_hold"] = _mean(hold, self.test_env, episodes, seed)
        return result


def _mean(policy: Callable, make_env: MakeEnv, episodes: int, seed: int) -> float:
    returns = evaluate(policy, make_env, episodes, seed)
    return sum(returns) / len(returns)


def workload(
    name: str | None = None,
    *,
    prices: Any = None,
    ticker: str | None = None,
    env_options: Mapping[str, Any] | None = None,
) -> Workload:
    """The workload of that name.

    Args:
        name: a game ("othello", "othello6", "othello4", "bandit"), an env id, "module:factory", "trading" (real daily bars, or
            `prices`), "minutes" (simulated, anchored to real days), "ou", "sine" or "martingale" (simulated). Left out: "trading"
            with prices or a ticker, else "CartPole-v1". An id or factory with `prices` is given the market as `market=`.
        prices: a file or DataFrame for `rlbench.load_prices`.
        ticker: which instrument, where there are several.
        env_options: keyword arguments of `TradingEnv`, such as `fee` or `window`.

    Raises:
        EnvError, PriceError, FileNotFoundError: naming what was found and what is accepted.
    """
    if name is None:
        name = "CartPole-v1" if prices is None and ticker is None else "trading"
    if name in GAMES:
        return _game(name, prices, ticker, env_options)
    market = _market(name, prices, ticker)
    if market is not None:
        return _on_market(name, market, dict(env_options or {}))
    if env_options:
        raise EnvError(f"env {name!r} takes none of {', '.join(env_options)}: these belong to the trading env.")
    return Workload(name, _known(name), preset=PRESET_OF.get(name, "default"))


def _game(name: str, prices: Any, ticker: str | None, env_options: Any) -> Workload:
    """A game of sets of actions, for PPO."""
    if prices is not None or ticker is not None or env_options:
        raise EnvError(f"env {name!r} is a game and takes no prices, ticker or options of the trading env.")
    if name == "bandit":
        from rlbench.envs.bandit import IdBandit

        return Workload(name, IdBandit(), preset=GAME_PRESET_OF[name])
    from rlbench.envs.othello import Othello

    size, opening_plies = GAMES[name]
    return Workload(
        name, Othello(size, opening_plies=opening_plies, least_opening_plies=0), preset=GAME_PRESET_OF[name]
    )


def _known(name: str) -> MakeEnv:
    """A factory for an id or module:factory; a misspelt workload is told what comes nearest."""
    try:
        return factory_of(name)
    except EnvError as error:
        near = difflib.get_close_matches(name, ("trading", *SIMULATED, *GAMES), n=1)
        raise EnvError(f"{error} Or did you mean {near[0]}?" if near else str(error)) from error


def _market(name: str, prices: Any, ticker: str | None) -> Market | None:
    """The market that the name or the prices speak of; None where neither does."""
    if name in SIMULATED:
        if prices is not None:
            raise EnvError(f"env {name!r} is a simulated market and takes no prices; with prices use --env trading.")
        return _simulated(name, ticker)
    if prices is not None:
        from rlbench.prices import load_prices

        return load_prices(prices, ticker=ticker)
    if name in TRADING:
        from rlbench.market import real

        return real(ticker or "AAPL")
    if ticker is not None:
        raise EnvError(f"env {name!r} has no ticker; tickers belong to --env trading, minutes, or to prices.")
    return None


def _simulated(name: str, ticker: str | None) -> Market:
    from rlbench import simulate

    if name == "minutes":
        return simulate.minutes(ticker or "AAPL")
    if ticker is not None:
        raise EnvError(f"env {name!r} has no ticker; tickers belong to --env trading, minutes, or to prices.")
    makers = {"ou": simulate.ornstein_uhlenbeck, "sine": simulate.sine, "martingale": simulate.martingale}
    return makers[name]()


def _on_market(name: str, market: Market, options: dict[str, Any]) -> Workload:
    parts = market.split()
    if name in TRADING or name in SIMULATED:
        factories: list[MakeEnv] = [TradingFactory(part, options) for part in parts]
    else:
        make = _taking_market(name)
        factories = [make({"market": part, **options}) for part in parts]
    for each in factories:
        each().close()  # a part too short for an episode is refused now, not after the training
    return Workload(name, factories[0], factories[1], "trading", factories[2], parts)


def _taking_market(name: str) -> Callable[[dict[str, Any]], MakeEnv]:
    """From keyword arguments, the market among them, to a factory of a reader's env."""
    make = _known(name)
    creator: Any = make
    if isinstance(make, ById):  # ask what Gymnasium would call
        entry = make.spec.entry_point
        if isinstance(entry, str):
            from gymnasium.envs.registration import load_env_creator

            entry = load_env_creator(entry)
        creator = entry
    accepted = inspect.signature(creator).parameters
    if "market" not in accepted and not any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
        raise EnvError(f"env {name!r} takes no market=, so that prices would be ignored; leave them out.")
    if isinstance(make, ById):
        return lambda options: ById(make.spec, options)
    return lambda options: Given(make, options)
