"""Reversi (Othello) players that look ahead: minimax on disc lead, to a depth of 1 to 4 plies, for any number of games at once.

Where there is a C compiler the search is alpha-beta in C. Elsewhere, and on a GPU, all positions are expanded together by the
tensor engine, a level at a time and in chunks, without pruning: more positions, the same choice. A pass is a ply, a finished
game counts as it stands, and of equal actions the first is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.envs.games import Player
from rlbench.envs.othello import SIZES, Boards, boards_of, count, lead, legal_actions, play
from rlbench.segments import argmax

DEPTHS = (1, 2, 3, 4)
CHUNK = 1 << 14  # positions that are expanded at once: some tens of megabytes a level


@dataclass(frozen=True)
class AlphaBeta:
    """A player (see `alpha_beta`)."""

    depth: int
    size: int = 8

    def __call__(self, obs: Tensor, legal: ActionSets) -> Tensor:
        boards = boards_of(obs, self.size)
        native = native_search() if obs.device.type == "cpu" else None
        if native is not None:
            return native(boards.mine, boards.theirs, legal.ids, legal.offsets, self.size, self.depth)
        return first_of_largest(action_values(boards, legal, self.depth), legal)


def alpha_beta(depth: int, size: int = 8) -> Player:
    """The player that looks `depth` plies ahead, its own action one of them.

    Raises:
        ValueError: for a depth or a size that is not offered.
    """
    for name, value, accepted in (("depth", depth, DEPTHS), ("size", size, SIZES)):
        if value not in accepted:
            raise ValueError(f"{name}={value!r} is refused; accepted: {', '.join(map(str, accepted))}.")
    return AlphaBeta(depth, size)


@cache
def native_search() -> Callable[..., Tensor] | None:
    """The search in C; None where it cannot be built."""
    from rlbench.native.build import BuildError
    from rlbench.native.othello import alpha_beta_ids, load_othello

    try:
        load_othello()
    except BuildError:
        return None
    return alpha_beta_ids


def first_of_largest(values: Tensor, legal: ActionSets) -> Tensor:
    """The id (N,) of each state's action of the largest value (A,), the first where several are equal."""
    values = values if values.is_floating_point() else values.float()  # counts of discs: exact
    return legal.ids[legal.offsets[:-1] + argmax(values, legal.offsets)]


def action_values(boards: Boards, legal: ActionSets, depth: int) -> Tensor:
    """The disc lead (A,) int64 of the player to move after each action and the best `depth` - 1 plies behind it."""
    states = legal.states()
    if depth == 1:
        placed = torch.where(legal.ids == 0, 0, 2 * count(legal.ids) - 1)  # one disc more, and what changed its side
        return lead(boards)[states] + placed
    parts = []
    for part, ids in zip(states.split(CHUNK), legal.ids.split(CHUNK), strict=True):
        after = play(Boards(boards.mine[part], boards.theirs[part], boards.size), ids)
        parts.append(-state_values(after, depth - 1))
    return torch.cat(parts) if parts else legal.ids


def state_values(boards: Boards, depth: int) -> Tensor:
    """The disc lead (N,) int64 that the player to move gets by the best `depth` plies, at least 1."""
    legal = legal_actions(boards)
    best = _most(action_values(boards, legal, depth), legal.states(), len(boards.mine))
    return torch.where(legal.counts == 0, lead(boards), best)


def _most(values: Tensor, states: Tensor, num_states: int) -> Tensor:
    """The largest (N,) of each state's values (A,), in int64."""
    start = torch.full((num_states,), torch.iinfo(torch.int64).min, device=values.device)
    return start.scatter_reduce(0, states, values, "amax")
