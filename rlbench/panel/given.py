"""What a panel was given: which trainer, and which environment or game."""

from __future__ import annotations

from typing import Any

from rlbench.config import Config, ConfigError
from rlbench.envs.given_games import as_game
from rlbench.envs.make import factory_of, is_vector
from rlbench.envs.source import EnvSource, env_source
from rlbench.panel.lines import env_name, named_game
from rlbench.speedups import ChoiceError
from rlbench.workloads import CONFIGS, Workload, workload


def trainer_of(wanted: str | None, config: Any) -> str:
    """The trainer that is asked for, or that the config belongs to; else DQN.

    Raises:
        ChoiceError, ConfigError: for one that there is not, and for the config of another.
    """
    own = config.trainer if isinstance(config, Config) else None
    trainer = wanted or own or "dqn"
    if trainer not in CONFIGS:
        raise ChoiceError(f"there is no workload {trainer!r}: workloads are {', '.join(CONFIGS)}.")
    if own not in (None, trainer):
        raise ConfigError(
            f"workload={trainer!r} with a {type(config).__name__}: accepted is {CONFIGS[trainer].__name__}."
        )
    return trainer


def workload_of(env: Any) -> Workload:
    """What is trained and evaluated on. A single env is copied for each, so that no training leaves a trace in it."""
    name = env if isinstance(env, str) else named_game(env)
    if name:
        return workload(name)
    name = env_name(env) or "env"
    if as_game(env) is not None:
        return Workload(name, env)
    make = factory_of(env)
    return Workload(name, env if is_vector(env) else make, make)


def source_of(env: Any) -> EnvSource | None:
    """What the env is, which may bar some variants; None where it cannot be made, which Run says in its time."""
    try:
        return env_source(env)
    except Exception:  # whatever a reader's factory raises
        return None
