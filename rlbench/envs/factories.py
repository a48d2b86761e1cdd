"""Factories of environments as small objects: they can be sent to a process of their own, which a lambda cannot."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlbench.envs.spaces import EnvError

if TYPE_CHECKING:
    from rlbench.market import Market

EPISODE_BARS = 256  # of a trading episode where nothing else is asked for and the market is long enough


@dataclass(frozen=True)
class ById:
    """Environments of an id registered with Gymnasium, by its specification: another process need not have registered it."""

    spec: Any  # gymnasium.envs.registration.EnvSpec
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __call__(self) -> Any:
        import gymnasium

        return gymnasium.make(self.spec, **self.options)


@dataclass(frozen=True)
class CopyOf:
    """Copies of one environment. Raises EnvError where it cannot be copied."""

    env: Any

    def __call__(self) -> Any:
        try:
            return copy.deepcopy(self.env)
        except Exception as error:  # whatever an object's own copying raises
            raise EnvError(
                f"{self.env} cannot be copied ({error}): pass a factory, a function that makes an env."
            ) from error


@dataclass(frozen=True)
class Given:
    """Environments of a reader's factory that takes keyword arguments."""

    make: Any
    options: Mapping[str, Any] = field(repr=False)

    def __call__(self) -> Any:
        return self.make(**self.options)


@dataclass(frozen=True)
class TradingFactory:
    """Trading envs on a market, with episodes of `EPISODE_BARS` steps, or as many as it has, unless `options` say otherwise."""

    market: Market = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> Any:
        from rlbench.envs.trading import TradingEnv

        room = len(self.market.close) - self.options.get("window", 1)
        return TradingEnv(self.market, **{"episode_length": min(EPISODE_BARS, room), **self.options})
