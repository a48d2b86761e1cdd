"""What a game is to PPO: N of them side by side, with a set of legal actions in every state, each a 64-bit id.

A game can be given in three forms. As rules (`Game`), from which any number of games is made, stepped by tensors or in native
code. As N games that somebody has written (`Games`). Or as one game in plain Python (`OneGame`), of which `OneByOne` makes N:
the simplest form, and the slowest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from rlbench.actions import ActionSets


class Position(NamedTuple):
    """Where N games stand, seen by the player to move."""

    obs: Tensor  # (N, D) float32
    legal: ActionSets  # of N states; none is empty


class GameStep(NamedTuple):
    """What one step of N games gives. A game that has ended starts anew in the same step."""

    obs: Tensor  # (N, D) float32: where to act next; the first state of a new game where one ended
    legal: ActionSets  # of those states
    reward: Tensor  # (N,) float32, to the player who moved
    terminated: Tensor  # (N,) bool
    truncated: Tensor  # (N,) bool
    next_obs: Tensor  # (N, D) float32: where the step led, the last state of its game where one ended


@runtime_checkable
class OneGame(Protocol):
    """One game in plain Python.

    `alternating` says that two players take turns in a zero-sum game and that `features` are those of the player to move: the
    value of a state to one is then minus its value to the other. Ids are Python ints from 0 to 2^64 - 1.
    """

    obs_size: int  # D
    alternating: bool

    def reset(self, seed: int, episode: int, index: int) -> None:
        """Start episode `episode` of game `index`, from numbers that depend on these three alone."""
        ...

    def features(self) -> Sequence[float]: ...

    def legal(self) -> Sequence[int]: ...

    def step(self, action_id: int) -> tuple[float, bool]:
        """(reward to the player who moved, whether the game has ended)."""
        ...


class Games(Protocol):
    """N games side by side. Every tensor that is handed out is a new one."""

    name: str
    num_envs: int
    obs_size: int
    alternating: bool
    device: torch.device

    def reset(self) -> Position:
        """All games at the start of their first episode."""
        ...

    def step(self, ids: Tensor) -> GameStep:
        """Take the legal action ids (N,) int64, one a game."""
        ...


# (obs (N, D), legal sets of N states) -> ids (N,) int64
Player = Callable[[Tensor, ActionSets], Tensor]


class Game(Protocol):
    """The rules of a game, from which games are made. All three ways give the same episodes."""

    name: str
    obs_size: int
    alternating: bool
    opponents: Mapping[str, Callable[[int], Any]]  # by name: seed -> who plays against a policy that is evaluated

    def one(self) -> OneGame: ...

    def batched(self, num_envs: int, seed: int, device: Any) -> Games: ...

    def native(self, num_envs: int, seed: int) -> Games: ...
