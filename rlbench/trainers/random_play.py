"""What chance earns in an env or a game: the zero of the scale on which returns are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.config import PPOConfig
from rlbench.envs.source import EnvSource
from rlbench.envs.spaces import describe_spaces
from rlbench.random import Purpose, Stream, random_bits, to_below, to_uniform
from rlbench.trainers.evaluate import evaluate
from rlbench.trainers.explore import random_legal
from rlbench.trainers.strength import evaluate_game


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


def random_game_return(
    source: EnvSource,
    config: PPOConfig,
    seed: int,
    device: torch.device,
    should_stop: Callable[[], bool] = lambda: False,
) -> float | None:
    """The same in a game, by the evaluation that a policy gets: `eval_episodes` of them, against `eval_opponent`.

    None where `should_stop` said so, and where nothing is evaluated.
    """
    returns = evaluate_game(_Chance(source, config, seed, device, should_stop), config.eval_episodes, seed)
    return sum(returns) / len(returns) if returns and not should_stop() else None


@dataclass
class _Chance:
    """What an evaluation asks of a trainer, of one whose policy is all chance: the largest of random scores."""

    source: EnvSource
    config: PPOConfig
    seed: int
    device: torch.device
    should_stop: Callable[[], bool]
    calls: int = 0

    @property
    def stopping(self) -> bool:
        return self.should_stop()

    @property
    def evaluator(self) -> _Chance:
        return self

    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, None]:
        """Scores (A,), not normalised, of the n-th call; other draws than those of an opponent that moves at random."""
        action = torch.arange(len(legal.ids), device=legal.ids.device)
        scores = to_uniform(random_bits(self.seed, Purpose.ACTION, self.calls, action))
        self.calls += 1
        return scores, None
