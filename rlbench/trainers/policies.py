"""The policy that goes with an environment, how it is asked, and where its samples come from."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn

from rlbench.config import ConfigError, PPOConfig
from rlbench.envs.executors import prepare_source
from rlbench.envs.make import make_collector
from rlbench.envs.source import EnvSource
from rlbench.evaluations.dense import Dense
from rlbench.models.action_scorer import ActionScorer
from rlbench.models.actor_critic import ActorCritic
from rlbench.random import Purpose, random_bits
from rlbench.speedups import Choices
from rlbench.trainers.env_rollouts import EnvRollouts
from rlbench.trainers.finite import check_start
from rlbench.trainers.game_rollouts import GameRollouts


class Policy(NamedTuple):
    """What PPO trains."""

    model: nn.Module
    evaluator: Any  # asks it about many states; see `rlbench.evaluations`
    rollouts: Any  # `collect(first_step, note) -> Rollout`
    collector: Any  # steps the environments


def policy_for(
    source: EnvSource, config: PPOConfig, choices: Choices, bound: dict[str, Any], device: torch.device
) -> Policy:
    """A scorer of actions for a game, an actor-critic for any other environment; weights from the config's seed."""
    generator = torch.Generator().manual_seed(random_bits(config.seed, Purpose.WEIGHTS, 0, 0))
    if source.game is None:
        return _of_env(source, config, choices, generator, device)
    games = bound["games"](source.game, source.num_envs or config.num_envs, config.seed, device)
    model = ActionScorer(games.obs_size, config.hidden, generator, bound["action_encoding"]).to(device)
    evaluator = bound["evaluate"](model)
    rollouts = GameRollouts(games, model, evaluator, config, device)
    return Policy(model, evaluator, rollouts, rollouts)


def _of_env(
    source: EnvSource, config: PPOConfig, choices: Choices, generator: torch.Generator, device: torch.device
) -> Policy:
    if config.old_log_probs != "behaviour":
        raise ConfigError(
            f"old_log_probs={config.old_log_probs!r} needs sets of legal actions, and {source.name} has none; accepted here: "
            "'behaviour'."
        )
    prepared = prepare_source(source, choices.features, choices.market_io)
    collector = make_collector(prepared, config.num_envs, config.seed, environments=choices.environments, device=device)
    check_start(collector.obs, collector.name)
    spec = collector.spec
    model = ActorCritic(spec.obs_size, config.hidden, spec.num_actions, generator).to(device)
    evaluator = Dense(model)
    return Policy(model, evaluator, EnvRollouts(collector, model, evaluator, config, device), collector)
