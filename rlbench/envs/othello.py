"""Reversi (Othello) on 4x4, 6x6 and 8x8 boards, any number of games at once, as integer arithmetic on tensors.

A board is two sets of squares, those of the player to move and those of the other, each a number of 64 bits held in int64;
square (row, column) has bit 8 row + column whatever the size. An action's id is the set of squares that change to the mover's
colour, the disc placed and those flipped; a pass is 0, and legal only where nothing else is; a finished game has no action.

`legal_squares` and `play_square` work on the squares themselves, and never wait for a device. Ids differ in number from state to
state: the host reads how many there are where they are packed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from rlbench.actions import ActionError, ActionSets, to_unsigned
from rlbench.envs.othello_batch import SIZES, START, count, flips, legal_squares
from rlbench.envs.othello_batch import nth_square as nth_square  # offered here too, with the next two
from rlbench.envs.othello_batch import random_step as random_step
from rlbench.envs.othello_batch import signed as signed
from rlbench.envs.othello_batch_ids import packed_ids

if TYPE_CHECKING:
    from rlbench.envs.games import Games, OneGame, Player

REWARDS = ("win", "discs")
OPPONENTS = ("random", "greedy", "alpha_beta_1", "alpha_beta_2", "alpha_beta_3", "alpha_beta_4")
MOST_OPENING_PLIES = 63  # an episode has 64 draws for its opening


class Boards(NamedTuple):
    """N positions, seen by the player to move."""

    mine: Tensor  # (N,) int64
    theirs: Tensor  # (N,) int64
    size: int


def start(num_games: int = 1, size: int = 8, device: str | torch.device = "cpu") -> Boards:
    """The four discs in the middle; the player to move is black, who has the square right of and above the middle.

    Raises:
        ValueError: for a size that is none of 4, 6 and 8.
    """
    check_size(size)
    mine, theirs = (torch.full((num_games,), bits, device=device) for bits in START[size][:2])
    return Boards(mine, theirs, size)


def check_size(size: int) -> None:
    if type(size) is not int or size not in SIZES:
        raise ValueError(f"size={size!r} is refused; accepted: {', '.join(map(str, SIZES))}.")


def stuck(boards: Boards, moves: Tensor) -> tuple[Tensor, Tensor]:
    """The games (K,) whose player to move has no square among `moves` (N,), and whether they are over (K,), not a pass."""
    mine, theirs, size = boards
    games = (moves == 0).nonzero().squeeze(1)  # sync: few or none, and whether they are over costs as much as all moves
    if not len(games):
        return games, games.to(torch.bool)
    return games, legal_squares(theirs.index_select(0, games), mine.index_select(0, games), size) == 0


def legal_actions(boards: Boards) -> ActionSets:
    """The ids of every position's legal actions, in the order of their squares."""
    mine, theirs, size = boards
    moves = legal_squares(mine, theirs, size)
    games, over = stuck(boards, moves)
    if len(games):
        a_disc = mine.index_select(0, games)
        moves.index_copy_(0, games, (a_disc & -a_disc).masked_fill_(over, 0))  # any disc stands for a pass
    return packed_ids(mine, theirs, moves, size)


def play(boards: Boards, ids: Tensor) -> Boards:
    """Take action ids (N,) int64, one a game; the mover changes. Not checked (see `check_play`).

    A finished game stays as it is under id 0, but for the mover.
    """
    return Boards(boards.theirs & ~ids, boards.mine | ids, boards.size)


def play_square(boards: Boards, square: Tensor) -> Boards:
    """Place a disc on a legal square (N,), a set of one, or of none for a pass; the mover changes. Not checked."""
    return play(boards, square | flips(boards.mine, boards.theirs, square, boards.size))


def check_play(boards: Boards, ids: Tensor) -> Boards:
    """`play`, after a look at the ids.

    Raises:
        ActionError: naming the first game whose id is not legal there, and those that are.
    """
    num_games = len(boards.mine)
    if ids.shape != (num_games,) or ids.dtype != torch.int64:
        raise ActionError(
            f"ids {tuple(ids.shape)} {ids.dtype} are refused; accepted: one a game, ({num_games},) torch.int64."
        )
    legal = legal_actions(boards)
    states = legal.states()
    found = torch.zeros_like(ids).index_add_(0, states, (legal.ids == ids.index_select(0, states)).to(torch.int64))
    bad = (found == 0).nonzero()  # sync: a check
    if len(bad):
        game = int(bad[0])  # sync: an error
        accepted = to_unsigned(legal.ids[legal.offsets[game] : legal.offsets[game + 1]])
        choice = f"accepted: {', '.join(map(str, accepted))}" if accepted else "the game is over and has no action"
        raise ActionError(f"game {game}: the id {to_unsigned(ids[game])[0]} is refused; {choice}.")
    return play(boards, ids)


def finished(boards: Boards) -> Tensor:
    """(N,) bool: neither player has a square to place a disc on."""
    mine, theirs, size = boards
    return (legal_squares(mine, theirs, size) | legal_squares(theirs, mine, size)) == 0


def lead(boards: Boards) -> Tensor:
    """Discs of the player to move less those of the other, (N,) int64."""
    return count(boards.mine) - count(boards.theirs)


def features(boards: Boards) -> Tensor:
    """What a network sees, (N, 2 size²) float32: a plane of the mover's discs, then one of the other's."""
    mine, theirs, size = boards
    halves = torch.stack((mine, theirs), 1).view(torch.int32)[..., None]  # (N, 4, 1): the low half of each first
    bits = (halves >> torch.arange(32, dtype=torch.int32, device=mine.device)).bitwise_and_(1)  # (N, 4, 32)
    planes = bits.view(-1, 2, 8, 8)[:, :, :size, :size]
    return planes.to(torch.float32).reshape(-1, 2 * size**2)


def boards_of(obs: Tensor, size: int) -> Boards:
    """The boards that `features` (N, 2 size²) were made of.

    Raises:
        ValueError: for features of another size of board.
    """
    check_size(size)
    if obs.ndim != 2 or obs.shape[1] != 2 * size**2:
        raise ValueError(f"features {tuple(obs.shape)} are refused; a {size}x{size} board has (N, {2 * size**2}).")
    squares = torch.zeros(len(obs), 2, 8, 8, dtype=torch.bool, device=obs.device)
    squares[:, :, :size, :size] = obs.reshape(-1, 2, size, size) > 0.5
    rows = squares.view(-1, 8).view(torch.int64).squeeze(1)  # (16 N,): a square in every byte
    rows = (rows * 0x0102040810204080) >> 56  # byte j's bit moves to bit 56 + j
    mine, theirs = rows.to(torch.uint8).view(-1, 16).view(torch.int64).unbind(1)
    return Boards(mine.contiguous(), theirs.contiguous(), size)


@dataclass(frozen=True)
class Othello:
    """The rules of a game (`rlbench.envs.games.Game`), from which games are made.

    Args:
        size: 4, 6 or 8 rows and columns.
        reward: at the end of a game, to the player who moved last, or to the agent where there is an opponent. "win": 1, 0 for a
            draw, or -1; "discs": the lead in discs over the number of squares.
        opening_plies: random plies at the start of each episode. An opening that ends the game is left out.
        least_opening_plies: where given, an episode has a random number of them from this to `opening_plies`, all alike.
        opponent: None for self-play; else who answers each of the agent's moves, and in every other episode moves first:
            "random", "greedy" (flips the most discs), or "alpha_beta_1" to "alpha_beta_4" (that many plies ahead on disc lead).

    Raises:
        ValueError: naming the argument, what was found and what is accepted.
    """

    size: int = 8
    reward: str = "win"
    opening_plies: int = 0
    opponent: str | None = None
    least_opening_plies: int | None = None

    def __post_init__(self) -> None:
        check_size(self.size)
        if self.reward not in REWARDS:
            raise ValueError(f"reward={self.reward!r} is refused; accepted: {', '.join(REWARDS)}.")
        if type(self.opening_plies) is not int or not 0 <= self.opening_plies <= MOST_OPENING_PLIES:
            raise ValueError(
                f"opening_plies={self.opening_plies!r} is refused; accepted: 0 to {MOST_OPENING_PLIES}, a whole number."
            )
        least = self.least_opening_plies
        if least is not None and (type(least) is not int or not 0 <= least <= self.opening_plies):
            raise ValueError(
                f"least_opening_plies={least!r} is refused; accepted: None, or a whole number from 0 to "
                f"opening_plies={self.opening_plies}."
            )
        if self.opponent is not None and self.opponent not in OPPONENTS:
            raise ValueError(f"opponent={self.opponent!r} is refused; accepted: None, {', '.join(OPPONENTS)}.")

    @property
    def name(self) -> str:
        against = f" against {self.opponent}" if self.opponent else ""
        return f"Othello {self.size}x{self.size}{against}"

    @property
    def obs_size(self) -> int:
        return 2 * self.size**2

    @property
    def alternating(self) -> bool:
        return self.opponent is None

    @property
    def match_opening_plies(self) -> int:
        """Random plies before a game of a match: enough to tell games apart, few enough to leave a game to play."""
        return self.size**2 // 8

    @property
    def opponents(self) -> Mapping[str, Callable[[int], Player]]:
        """By name: seed -> who plays against a policy that is evaluated."""
        from rlbench.envs.players import opponent_named

        return {name: partial(opponent_named, name, size=self.size) for name in OPPONENTS}

    def one(self) -> OneGame:
        from rlbench.envs.othello_one import OneOthello

        return OneOthello(self)

    def batched(self, num_envs: int, seed: int, device: Any = "cpu") -> Games:
        from rlbench.envs.othello_games import BatchedOthello

        return BatchedOthello(self, num_envs, seed, device)

    def native(self, num_envs: int, seed: int) -> Games:
        from rlbench.native.othello import NativeOthello

        return NativeOthello(self, num_envs, seed)

    def why_not_native(self) -> str | None:
        """Why games cannot be stepped in native code here; None where they can."""
        from rlbench.native.build import BuildError
        from rlbench.native.othello import load_othello

        try:
            load_othello()
        except BuildError as error:
            return str(error)
        return None
