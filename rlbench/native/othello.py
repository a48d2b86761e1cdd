"""Native Reversi (Othello) on the CPU: a Python face for othello.c and othello_search.c.

The same episodes as the game in plain Python and the one of tensors, one C call a step. ctypes releases the GIL in a call.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import ActionError, ActionSets, check_sets, to_unsigned
from rlbench.envs.games import GameStep, Position
from rlbench.envs.othello import Othello
from rlbench.envs.spaces import EnvError
from rlbench.native.build import BuildError, check_layout, load, take_build_seconds
from rlbench.native.envs import POINTER, WHOLE, Key
from rlbench.native.othello_masks import SIZES, MaskGames, check_num_envs, padded, random_play
from rlbench.random import Purpose
from rlbench.uncopied import Uncopied

__all__ = ["MaskGames", "NativeOthello", "alpha_beta_ids", "load_othello", "random_play", "why_not_native"]

BLOCK = 1 << 20  # bytes of outcomes that are allocated at once
IDS = 1 << 16  # legal ids, likewise
DEEPEST = 20  # plies of a search
# In othello.c: from 1 on the depth of a search. Flipping the most discs is a search of depth 1.
OPPONENTS = {None: 0, "random": -1, "greedy": 1, **{f"alpha_beta_{depth}": depth for depth in (1, 2, 3, 4)}}


class OthelloState(ctypes.Structure):
    """Kept in step with `struct othello` in othello.c."""

    _fields_ = (
        *(
            (name, WHOLE)
            for name in ["num_games", "size", "in_discs", "least_opening_plies", "opening_plies", "opponent"]
        ),
        *((name, Key) for name in ["opening", "reply"]),
        *((name, POINTER) for name in ["mine", "theirs", "legal", "ids", "episode", "replies"]),
    )


class Turn(ctypes.Structure):
    """Kept in step with `struct turn` in othello.c."""

    _fields_ = tuple((name, POINTER) for name in ["obs", "next_obs", "reward", "terminated", "offsets"])


class NativeOthello(Uncopied):
    """N games of Reversi (the protocol `Games`), stepped in one C call. It holds their state.

    Args:
        game: the rules: size, reward, the plies of an opening and opponent are read.

    Raises:
        EnvError: for rules or a number of games that it does not have.
        BuildError: where it cannot be built here.
    """

    device = torch.device("cpu")

    def __init__(self, game: Othello, num_envs: int, seed: int) -> None:
        reason = why_not_native(game)
        if reason:
            raise EnvError(f"{reason}.")
        self.name, self.num_envs, self.seed = game.name, check_num_envs(num_envs), seed
        self.obs_size, self.alternating = 2 * game.size**2, game.opponent is None
        library = load_othello()
        check_layout(library, "othello", OthelloState)
        check_layout(library, "turn", Turn)
        self.build_s = take_build_seconds()
        opening, reply = Key.of(seed, Purpose.RESET), Key.of(seed, Purpose.OPPONENT)
        least = game.opening_plies if game.least_opening_plies is None else game.least_opening_plies
        rules = game.size, game.reward == "discs", least, game.opening_plies, OPPONENTS[game.opponent]
        self._state = OthelloState(num_envs, *rules, opening, reply)
        names = ("mine", "theirs", "legal", "ids", "episode", "replies")
        self._arrays = {name: np.zeros(padded(num_envs), np.int64) for name in names}
        for name, array in self._arrays.items():
            setattr(self._state, name, array.ctypes.data)
        self._address = ctypes.addressof(self._state)
        both = (POINTER, POINTER)
        self._reset_games = _function(library, "othello_reset", *both, POINTER, WHOLE)
        self._step_games = _function(library, "othello_step", *both, POINTER, POINTER, WHOLE)
        self._legal_of_games = _function(library, "othello_legal", *both, POINTER, WHOLE)
        self._begun = False
        self._rows: list[tuple[Tensor, ...]] = []
        self._hold_ids(IDS)

    def reset(self) -> Position:
        """All games at the start of their first episode."""
        self._begun = True
        obs, *_, offsets = self._row()
        total = self._reset_games(self._address, self._turn, self._ids_at, self._room)
        return Position(obs, self._sets(total, offsets))

    def step(self, ids: Tensor) -> GameStep:
        """Take the legal action ids (N,) int64, one a game.

        Raises:
            EnvError: for ids of another shape or kind, and for one that is not legal: then nothing has been stepped.
        """
        ids = self._checked(ids)
        obs, next_obs, reward, terminated, truncated, offsets = self._row()
        total = self._step_games(self._address, self._turn, ids.data_ptr(), self._ids_at, self._room)
        if total < 0:
            self._refuse(-1 - total, ids)
        return GameStep(obs, self._sets(total, offsets), reward, terminated, truncated, next_obs)

    def _checked(self, ids: Any) -> Tensor:
        if not self._begun:
            raise RuntimeError("The games have not begun; call reset() before step().")
        if not isinstance(ids, Tensor):
            raise EnvError(f"{self.name}: ids of type {type(ids).__name__}; accepted: a tensor.")
        if ids.dtype != torch.int64 or ids.shape != (self.num_envs,) or ids.device.type != "cpu":
            raise EnvError(
                f"{self.name}: ids {tuple(ids.shape)} {ids.dtype} on {ids.device}; "
                f"accepted: ({self.num_envs},) torch.int64 on cpu."
            )
        return ids.contiguous()

    def _sets(self, total: int, offsets: Tensor) -> ActionSets:
        """The legal actions that C has written, or, where there was no room for them, writes now."""
        if total > self._room:
            self._hold_ids(max(IDS, 4 * total))
            self._legal_of_games(self._address, offsets.data_ptr(), self._ids_at, self._room)
        start = len(self._ids) - self._room
        self._ids_at, self._room = self._ids_at + 8 * total, self._room - total
        return ActionSets(torch.from_numpy(self._ids[start : start + total]), offsets)

    def _hold_ids(self, room: int) -> None:
        self._ids, self._room = np.empty(room, np.int64), room
        self._ids_at = self._ids.ctypes.data

    def _row(self) -> tuple[Tensor, ...]:
        """Memory for the outcomes of a step, to which `_turn` points C."""
        if not self._rows:
            self._allocate()
        self._turn -= ctypes.sizeof(Turn)
        return self._rows.pop()

    def _allocate(self) -> None:
        """Memory for the outcomes of many steps: six allocations a step would cost more than a step of a few games does."""
        n, d = self.num_envs, self.obs_size
        steps = max(1, BLOCK // (n * (8 * d + 14)))
        kinds = (((n, d), np.float32), ((n, d), np.float32), ((n,), np.float32), ((n,), bool), ((n + 1,), np.int64))
        arrays = [np.empty((steps, *shape), kind) for shape, kind in kinds]
        at = np.arange(steps)
        self._turns = np.stack([array.ctypes.data + array.strides[0] * at for array in arrays], 1)  # `struct turn`s
        arrays.insert(4, np.zeros((steps, n), bool))  # nothing is ever truncated
        self._rows = [tuple(torch.from_numpy(array[k]) for array in arrays) for k in range(steps)]
        self._turn = self._turns.ctypes.data + self._turns.nbytes

    def _refuse(self, i: int, ids: Tensor) -> None:
        offsets = torch.empty(self.num_envs + 1, dtype=torch.int64)
        legal = self._sets(self._legal_of_games(self._address, offsets.data_ptr(), self._ids_at, self._room), offsets)
        accepted = ", ".join(map(str, to_unsigned(legal.ids[offsets[i] : offsets[i + 1]])))
        raise EnvError(f"{self.name}, game {i}: the id {to_unsigned(ids[i])[0]} is not legal; accepted: {accepted}.")


def alpha_beta_ids(mine: Tensor, theirs: Tensor, ids: Tensor, offsets: Tensor, size: int, depth: int) -> Tensor:
    """The best action (N,) of each of N positions by minimax on disc lead, `depth` plies deep, the first of equals.

    Args:
        mine, theirs: (N,) int64, the discs of the player to move and of the other.
        ids, offsets: (A,) and (N + 1,) int64, legal actions from which to choose; "first" is in their order.
        size: of the board, 4, 6 or 8.
        depth: 1 to 20 plies, the action itself one of them; a pass is a ply, a finished game counts as it stands.

    Raises:
        ActionError: for tensors of another kind, an action that is not legal and a position without one, naming the position.
    """
    for name, value, accepted in (("size", size, SIZES), ("depth", depth, range(1, DEEPEST + 1))):
        if type(value) is not int or value not in accepted:
            raise ActionError(f"{name}={value!r} is refused; accepted: {', '.join(map(str, accepted))}.")
    given = (mine, theirs, ids, offsets)
    if any(not isinstance(t, Tensor) or t.dtype != torch.int64 or t.device.type != "cpu" or t.ndim != 1 for t in given):
        raise ActionError("accepted are boards, ids and offsets as tensors of one axis, torch.int64 on the CPU.")
    check_sets(ActionSets(ids, offsets))
    if not len(mine) == len(theirs) == len(offsets) - 1:
        raise ActionError(f"{len(mine)} and {len(theirs)} boards with actions of {len(offsets) - 1} are refused.")
    boards = [tensor.contiguous() for tensor in given]
    best = torch.empty_like(boards[0])
    addresses = [tensor.data_ptr() for tensor in boards]
    bad = _search()(*addresses, len(best), size, depth, best.data_ptr())
    if bad:
        i = bad - 1
        raise ActionError(
            f"position {i}, discs {to_unsigned(mine[i])[0]} and {to_unsigned(theirs[i])[0]}: its ids "
            f"{', '.join(map(str, to_unsigned(ids[offsets[i] : offsets[i + 1]])))} are not all legal on a {size}x{size} board."
        )
    return best


def load_othello() -> ctypes.CDLL:
    """The library of the games, built with the search where that has not been done.

    Raises:
        BuildError: where they cannot be built.
    """
    _search()
    return load("othello")


def why_not_native(game: Any = None) -> str | None:
    """The reason why the rules of a game cannot be played in native code here, or None. A subclass may have rules of its own."""
    if game is not None and type(game) is not Othello:
        return f"{getattr(game, 'name', game)} has no native counterpart; Othello itself has"
    try:
        load_othello()
    except BuildError as error:
        return str(error)
    return None


@cache
def _search() -> Any:
    library = load("othello_search")
    return _function(library, "alpha_beta_ids", *[POINTER] * 4, *[WHOLE] * 3, POINTER)


def _function(library: ctypes.CDLL, name: str, *arguments: Any) -> Any:
    found = getattr(library, name)
    found.restype, found.argtypes = WHOLE, arguments
    return found
