"""One game of two players, move by move, to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from rlbench.actions import to_unsigned
from rlbench.envs.games import Player, Position
from rlbench.envs.matches import make_games, self_play_of
from rlbench.envs.players import random_player


class Move(NamedTuple):
    """A position and what was done there; of the last position, nothing."""

    ply: int
    obs: torch.Tensor  # (D,), seen by the player to move
    legal: list[int]  # ids, 0 to 2^64 - 1
    chosen: int | None
    by: str | None  # the mover's name; "opening" for random plies


def play_one(game: Any, players: Sequence[tuple[str, Player]], seed: int = 1, opening_plies: int = 0) -> list[Move]:
    """A game of two named players, the first of whom has the first move behind the opening; the last entry is its end.

    Args:
        game: rules of a game for two; an opponent and an opening of its own are left out.
        opening_plies: plies drawn at random before the players take over.

    Raises:
        EnvError: for a game that is not for two players who take turns.
    """
    games = make_games(self_play_of(game), 1, seed)
    position, moves = games.reset(), []
    draw = random_player(seed)
    while True:
        ply = len(moves)
        by, player = ("opening", draw) if ply < opening_plies else players[(ply - opening_plies) % 2]
        chosen = player(*position)
        moves.append(Move(ply, position.obs[0], to_unsigned(position.legal.ids), to_unsigned(chosen)[0], by))
        step = games.step(chosen)
        position = Position(step.obs, step.legal)
        if bool(step.terminated[0] | step.truncated[0]):  # sync: one game, to be shown
            return [*moves, Move(ply + 1, step.next_obs[0], [], None, None)]


def some_of(moves: Sequence[Move], most: int) -> list[Move]:
    """At most so many positions, spread over the game, the first and the last among them."""
    if len(moves) <= most:
        return list(moves)
    return [moves[round(i * (len(moves) - 1) / (most - 1))] for i in range(most)]
