"""The peer's side of stepping games: pgx's Othello, jitted, in two forms.

Both play `steps` random legal plies of all games in one call, so that nothing of Python is left between two steps. As pgx's
manual has it: its `auto_reset`, an action by `jax.random.categorical`, observations. At its best: what is not asked for is not
computed. Observations are dropped, so that XLA leaves them out; an action takes one random number, not one for each square;
and a finished game is given the start position, which needs no random number at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

PACKAGE = "pgx"
FLAGS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

Call = Callable[[], int]  # plays on, and gives the episodes that ended


def jax_on_one_thread() -> Any:
    """JAX on the CPU. The threads of XLA are counted when it is first used: bind the process to one core besides."""
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}".strip()
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    return jax


def as_in_manual(games: int, steps: int, seed: int) -> Call:
    """`env.step` in pgx's wrapper for finished games, a Gumbel number for each of 65 actions."""
    jax = jax_on_one_thread()
    import pgx
    from pgx.experimental.wrappers import auto_reset

    env = pgx.make("othello")
    step = jax.vmap(auto_reset(env.step, env.init))

    def body(carry: tuple, key: Any) -> tuple:
        state, ended = carry
        draw, begin = jax.random.split(key)
        logits = jax.numpy.where(state.legal_action_mask, 0.0, -jax.numpy.inf)
        state = step(state, jax.random.categorical(draw, logits), jax.random.split(begin, games))
        return (state, ended + state.terminated.sum()), None

    return _playing(jax, env, games, seed, lambda state, key: jax.lax.scan(body, state, jax.random.split(key, steps)))


def at_its_best(games: int, steps: int, seed: int) -> Call:
    """`env.step`, and as little besides as random play needs."""
    jax = jax_on_one_thread()
    import pgx

    numpy, env = jax.numpy, pgx.make("othello")
    step, start = jax.vmap(env.step), _begun(jax, env, games, seed)

    def again(now: Any, begun: Any, over: Any) -> Any:
        return numpy.where(over.reshape(-1, *[1] * (now.ndim - 1)), begun, now)

    def body(carry: tuple, uniform: Any) -> tuple:
        state, ended = carry
        so_far = numpy.cumsum(state.legal_action_mask.astype(numpy.int32), axis=1)  # (N, 65)
        place = numpy.floor(uniform * so_far[:, -1])
        state = step(state, (so_far <= place[:, None]).sum(axis=1))
        over = state.terminated
        state = jax.tree.map(lambda now, begun: again(now, begun, over), state, start)
        return (state.replace(observation=start.observation), ended + over.sum()), None

    def play(state: tuple, key: Any) -> tuple:
        return jax.lax.scan(body, state, jax.random.uniform(key, (steps, games)))

    return _playing(jax, env, games, seed, play)


def _begun(jax: Any, env: Any, games: int, seed: int) -> Any:
    return jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(seed), games))


def _playing(jax: Any, env: Any, games: int, seed: int, play: Callable[[tuple, Any], tuple]) -> Call:
    """A call that goes on from where the last one left the games, and waits for the outcome."""
    run = jax.jit(lambda state, key: play((state, jax.numpy.int32(0)), key)[0])
    state, keys = _begun(jax, env, games, seed), jax.random.key(seed + 1)

    def call() -> int:
        nonlocal state, keys
        keys, key = jax.random.split(keys)
        state, ended = jax.block_until_ready(run(state, key))
        return int(ended)

    return call
