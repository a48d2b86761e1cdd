"""Which trainer takes which environment."""

from __future__ import annotations

from rlbench.envs.source import EnvSource
from rlbench.envs.spaces import EnvError


def why_not(trainer: str, source: EnvSource | None) -> str | None:
    """Why a trainer ("dqn", "ppo") cannot be used on an environment, whatever the choices, or None."""
    if trainer == "dqn" and source is not None and source.game is not None:
        return f"{source.name} is a game with sets of legal actions, which DQN does not take: rlbench.PPO does."
    return None


def check_takes(trainer: str, source: EnvSource | None) -> None:
    """Raises EnvError where `why_not` gives a reason."""
    if reason := why_not(trainer, source):
        raise EnvError(reason)
