"""What chance earns in an env: the zero of the scale on which returns are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlbench.envs.spaces import describe_spaces
from rlbench.random import Purpose, Stream, to_below
from rlbench.trainers.evaluate import evaluate
from rlbench.trainers.explore import random_legal


def random_return(
    make_env: Callable[[], Any], episodes: int, seed: int, should_stop: Callable[[], bool] = lambda: False
) -> float | None:
    """Mean return of the policy that draws each legal action with the same chance; None where `should_stop` said so."""
    env = make_env()
    actions = describe_spaces(env.observation_space, env.action_space, "the evaluation env").num_actions
    env.close()
    streams: dict[int, Stream] = {}
    calls = iter(range(2**62))

    def policy(obs: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        stream = streams.setdefault(len(obs), Stream(seed, Purpose.ACTION, len(obs)))
        bits = stream.bits(next(calls))
        return to_below(bits, actions) if mask is None else random_legal(bits, mask)

    returns = evaluate(policy, make_env, episodes, seed, should_stop)
    return sum(returns) / len(returns) if returns else None
