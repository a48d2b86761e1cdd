"""Native Reversi (Othello) with squares for actions and a mask of 64 bits for what is legal: a Python face for othello_masks.c.

The lightest form of the game: no features, no ids unless they are asked for. Bit 8 row + column is that square.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.envs.spaces import EnvError
from rlbench.native.build import check_layout, load, take_build_seconds
from rlbench.native.envs import POINTER, WHOLE, Key
from rlbench.random import Purpose
from rlbench.uncopied import Uncopied

SIZES = (4, 6, 8)
PAD = 8  # games; arrays are whole vectors
PASS = 64  # the square of a pass


class Masks(ctypes.Structure):
    """Kept in step with `struct masks` in othello_masks.c."""

    _fields_ = (
        *((name, WHOLE) for name in ["num_games", "size"]),
        *((name, POINTER) for name in ["mine", "theirs", "legal"]),
    )


class Counts(ctypes.Structure):
    """Kept in step with `struct counts` in othello_masks.c."""

    _fields_ = tuple((name, WHOLE) for name in ["steps", "episodes", "passes", "actions"])


class RandomPlay(NamedTuple):
    """What random play came to."""

    steps: int  # of all games together
    episodes: int  # that ended
    passes: int
    actions: int  # legal ones, summed over the states in which one was taken
    mine: Tensor  # (N,) int64, where the games stand then: the discs of the player to move
    theirs: Tensor  # (N,) int64
    last: ActionSets | None  # the ids that were packed before the last step; None for play with masks


class MaskGames(Uncopied):
    """N games of self-play from the start position, stepped in one C call; one that ends starts anew in the same step.

    Raises:
        EnvError: for a size that is none of 4, 6, 8 and fewer games than 1.
        BuildError: where it cannot be built here.
    """

    def __init__(self, num_envs: int, size: int = 8) -> None:
        if type(size) is not int or size not in SIZES:
            raise EnvError(f"size={size!r} is refused; accepted: {', '.join(map(str, SIZES))}.")
        self.num_envs, self.size = check_num_envs(num_envs), size
        self._arrays = {name: np.zeros(padded(num_envs), np.int64) for name in ("mine", "theirs", "legal")}
        self._games = Masks(num_envs, size, *(array.ctypes.data for array in self._arrays.values()))
        self._address = ctypes.addressof(self._games)
        library = load("othello_masks")
        check_layout(library, "masks", Masks)
        check_layout(library, "counts", Counts)
        self.build_s = take_build_seconds()
        self._reset, self._step, self._random = library.masks_reset, library.masks_step, library.masks_random
        self._reset.restype, self._reset.argtypes = None, (POINTER,)
        self._step.restype, self._step.argtypes = WHOLE, (POINTER,) * 5
        self._random.restype, self._random.argtypes = None, (POINTER, WHOLE, Key, POINTER, POINTER, POINTER)
        self.reset()

    def reset(self) -> Tensor:
        """All games at the start: the legal squares (N,) int64, a bit each."""
        self._reset(self._address)
        return self._copy("legal")

    def step(self, squares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Place a disc on squares (N,) int64, 64 to pass, which is legal where no square is.

        Returns:
            legal squares (N,) int64; reward (N,) float32, to the player who moved: 1 for a game won, -1 for one lost;
            terminated (N,) bool.

        Raises:
            EnvError: for squares of another shape or kind, and for one that is not legal: then nothing has been stepped.
        """
        n = self.num_envs
        if not isinstance(squares, Tensor) or squares.dtype != torch.int64 or squares.shape != (n,):
            found = f"{tuple(squares.shape)} {squares.dtype}" if isinstance(squares, Tensor) else type(squares).__name__
            raise EnvError(f"squares {found} are refused; accepted: ({n},) torch.int64.")
        if squares.device.type != "cpu":
            raise EnvError(f"squares on {squares.device} are refused; accepted: on cpu.")
        squares = squares.contiguous()
        legal, reward = torch.empty(n, dtype=torch.int64), torch.empty(n)
        terminated = torch.empty(n, dtype=torch.bool)
        out = (tensor.data_ptr() for tensor in (squares, legal, reward, terminated))
        bad = self._step(self._address, *out)
        if bad:
            mask = int(self._arrays["legal"][bad - 1])
            accepted = [square for square in range(64) if mask >> square & 1] or [PASS]
            raise EnvError(
                f"game {bad - 1}: square {int(squares[bad - 1])} is not legal; accepted: {', '.join(map(str, accepted))}."
            )
        return legal, reward, terminated

    def play_at_random(self, steps: int, seed: int, packed: bool = False) -> RandomPlay:
        """Let every game take `steps` random legal actions, all in one C call (see `random_play`)."""
        if type(steps) is not int or steps < 0:
            raise EnvError(f"steps={steps!r} is refused; accepted: whole numbers from 0 on.")
        most = self.size**2 - 4  # squares that can be free
        ids = np.empty(self.num_envs * most if packed else 0, np.int64)
        offsets = np.zeros(self.num_envs + 1, np.int64)
        counts = Counts()
        places = (ids.ctypes.data, offsets.ctypes.data) if packed else (None, None)
        self._random(self._address, steps, Key.of(seed, Purpose.ACTION), *places, ctypes.addressof(counts))
        last = ActionSets(torch.from_numpy(ids[: offsets[-1]].copy()), torch.from_numpy(offsets)) if packed else None
        numbers = (getattr(counts, name) for name, _ in Counts._fields_)
        return RandomPlay(*numbers, self._copy("mine"), self._copy("theirs"), last)

    def _copy(self, name: str) -> Tensor:
        return torch.from_numpy(self._arrays[name][: self.num_envs].copy())


def random_play(size: int, num_games: int, steps: int, seed: int, packed: bool = False) -> RandomPlay:
    """Random legal play of N games from the start position, with restarts, in one C call.

    In step t game i takes its k-th legal square, counted upward, where k = to_below(random_bits(seed, Purpose.ACTION, t, i),
    count); it passes where there is none.

    Args:
        packed: whether the ids of all legal actions are worked out and written before every step.
    """
    return MaskGames(num_games, size).play_at_random(steps, seed, packed)


def padded(num_envs: int) -> int:
    """Games that arrays have room for."""
    return -(-num_envs // PAD) * PAD


def check_num_envs(num_envs: Any) -> int:
    if type(num_envs) is not int or num_envs < 1:
        raise EnvError(f"num_envs={num_envs!r} is refused; accepted: 1 or more games.")
    return num_envs
