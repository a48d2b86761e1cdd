"""A game in any of the forms that a reader may have it in, as what a trainer asks for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from rlbench.envs.games import Games, OneGame
from rlbench.envs.spaces import EnvError

ONE = ("obs_size", "alternating", "reset", "features", "legal", "step")
GAMES = ("num_envs", "obs_size", "alternating", "reset", "step")
MADE_BY = ("one", "batched", "native")  # one of them is enough


def as_game(given: Any) -> Any:
    """The rules in `given`: itself, or what can be made from N games, or from a class or factory of one; else None."""
    if isinstance(given, str) or hasattr(given, "action_space") or hasattr(given, "single_action_space"):
        return None
    if hasattr(given, "obs_size") and any(callable(getattr(given, name, None)) for name in MADE_BY):
        return None if isinstance(given, type) else given
    if isinstance(given, type):
        return GameOfOnes(given) if all(hasattr(given, name) for name in ONE if name not in ("obs_size",)) else None
    if _has(given, ONE):
        raise EnvError(
            f"{type(given).__name__} is one game, and a trainer needs several: pass its class, or a function that makes one."
        )
    return GameOfGames(given) if _has(given, GAMES) and not hasattr(given, "num_actions") else None


def game_made_by(made: Any, factory: Callable[[], Any]) -> Any:
    """The rules behind something that a factory has made: rules, N games, or one game of which the factory makes more."""
    return GameOfOnes(factory) if _has(made, ONE) and not hasattr(made, "num_envs") else as_game(made)


def _has(thing: Any, names: tuple[str, ...]) -> bool:
    return all(hasattr(thing, name) for name in names)


class GameOfOnes:
    """Rules of which only single games in plain Python are known."""

    opponents: dict[str, Any] = {}  # noqa: RUF012 - empty for ever

    def __init__(self, make: Callable[[], OneGame]) -> None:
        probe = make()
        self.one = make
        self.name = getattr(probe, "name", type(probe).__name__)
        self.obs_size, self.alternating = probe.obs_size, probe.alternating


class GameOfGames:
    """N games that the reader wrote, stepped as they are. They have a seed of their own."""

    opponents: dict[str, Any] = {}  # noqa: RUF012 - empty for ever

    def __init__(self, games: Games) -> None:
        self.games, self.name = games, getattr(games, "name", type(games).__name__)
        self.obs_size, self.alternating, self.num_envs = games.obs_size, games.alternating, games.num_envs

    def batched(self, num_envs: int, seed: int, device: str | torch.device) -> Games:
        """The games themselves, where number and device are those that are asked for."""
        if num_envs not in (1, self.num_envs):
            raise EnvError(f"num_envs={num_envs}, but {self.name} has {self.num_envs}: leave num_envs out.")
        if torch.device(device).type != torch.device(self.games.device).type:
            raise EnvError(
                f"{self.name} lies on {self.games.device}, the trainer on {device}: make both on one device."
            )
        return self.games

    @cached_property
    def to_evaluate_on(self) -> GameOfGames:
        """A copy: those that are trained on must not be played meanwhile.

        Raises:
            EnvError: where they do not let themselves be copied.
        """
        try:
            return GameOfGames(copy.deepcopy(self.games))
        except Exception as error:  # whatever their own copying raises
            raise EnvError(
                f"{self.name} cannot be copied to be evaluated on ({type(error).__name__}: {str(error)[:100]}): pass the rules "
                "that make such games (rlbench.envs.games.Game), or set eval_episodes=0."
            ) from error
