"""Our Othello against pgx's, an implementation of its own: legal squares, discs and ends, ply by ply. Needs pgx."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from rlbench.actions import unpack
from rlbench.envs.othello import finished, legal_actions, play, start

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pgx") is None, reason="pgx is not installed")
PASS = 64


def bits_of(squares) -> int:
    return sum(1 << int(square) for square in np.flatnonzero(np.asarray(squares)))


def test_random_games_are_the_same_ply_by_ply():
    """An id is the squares that change to the mover's colour; pgx tells of the board after, seen by the next player."""
    from benchmarks.pgx_othello import jax_on_one_thread

    jax = jax_on_one_thread()
    import pgx

    env, rng, passes = pgx.make("othello"), np.random.default_rng(5), 0
    step, begin = jax.jit(env.step), env.init(jax.random.key(0))
    for _ in range(4):
        state, boards = begin, start()
        while not finished(boards).item():
            mask, ids = np.asarray(state.legal_action_mask), unpack(legal_actions(boards))[0]
            mine, theirs = (int(discs) & (2**64 - 1) for discs in (boards.mine, boards.theirs))
            assert (mine, theirs) == (bits_of(state._x.board > 0), bits_of(state._x.board < 0))
            placed = {(i & ~(mine | theirs)).bit_length() - 1 if i else PASS: i for i in ids}
            assert sorted(placed) == np.flatnonzero(mask).tolist()
            square = int(rng.choice(sorted(placed)))
            passes += square == PASS
            state = step(state, square)
            chosen = legal_actions(boards).ids[ids.index(placed[square])].reshape(1)
            boards = play(boards, chosen)
        mover, discs = int(state.current_player), [int(x) & (2**64 - 1) for x in boards[:2]]
        while not state.terminated:  # where squares are left it asks both players to pass
            state = step(state, PASS)
        lead = discs[0].bit_count() - discs[1].bit_count()
        assert state.rewards[mover] == np.sign(lead)
    assert passes
