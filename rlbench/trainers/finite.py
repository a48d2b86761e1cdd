"""Where NaN and infinity are stopped: one of them in replay would sooner or later make every weight NaN, silently."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from rlbench.batch import Collected
from rlbench.config import ConfigError, DQNConfig
from rlbench.envs.spaces import EnvError

REMEDY = "accepted are finite numbers (of float32's range). Mend the environment, or wrap it so that it gives them."


def finite(values: np.ndarray) -> bool:
    """Whether all numbers are finite. A sum of squares costs half a microsecond, `isfinite(…).all()` three times that."""
    return math.isfinite(np.vdot(values, values)) or bool(np.isfinite(values).all())  # squares may overflow


def check_step(collected: Collected, collector: Any, env_step: int) -> None:
    """Refuse what a step gave where it is not finite.

    Raises:
        EnvError: naming the env, what it gave and the env step.
    """
    after = (collector.obs,) if collector.finished else ()  # the first observations of new episodes
    if finite(collected.reward) and all(map(finite, (collected.next_obs, *after))):
        return
    for what, rows in (
        ("reward", collected.reward[:, None]),
        *(("observation", r) for r in (collected.next_obs, *after)),
    ):
        _refuse(what, rows, f"of env {{env}} at env step {env_step:,}", collector.name)


def check_start(obs: np.ndarray, name: str) -> None:
    """Refuse first observations (N, D) that are not finite."""
    if not finite(obs):
        _refuse("observation", obs, "of env {env} at its first reset", name)


def check_evaluation(obs: np.ndarray, reward: float, name: str, env: int, step: int) -> None:
    """Refuse an observation (D,) or a reward that is not finite, `step` steps into an episode."""
    if not (math.isfinite(reward) and finite(obs)):
        for what, rows in (("reward", np.array([[reward]])), ("observation", obs[None])):
            _refuse(what, rows, f"{step:,} steps into an episode of evaluation env {env}", name)


def check_outcome(good: bool, name: str, env_step: int) -> None:
    """Refuse what iterations on tensors or in native code, up to an env step, gave where some of it was not finite."""
    if not good:
        raise EnvError(f"{name}: a reward or an observation up to env step {env_step:,} is not finite; {REMEDY}")


def check_replay(replay: Any, name: str) -> None:
    """Refuse to go on with rows that are not finite, which an env gave and no training mends; asked when a loss is no number."""
    rows, fields = getattr(replay, "rows", None), getattr(replay, "fields", ())
    good = (
        bool(rows.isfinite().all())
        if isinstance(rows, Tensor)
        else all(np.isfinite(f).all() for f in fields if f is not None)
    )
    if not good:
        raise EnvError(f"{name}: replay holds observations or rewards that are not finite; {REMEDY}")


def check_loss(loss: float, config: DQNConfig, env_step: int, updates: int) -> None:
    """Refuse to go on once the loss, read at a log point after some updates, is no number.

    Raises:
        ConfigError: since what the env gave was finite, it is the settings that made the values grow without bound.
    """
    if not math.isfinite(loss):
        raise ConfigError(
            f"the loss is {loss} at env step {env_step:,}, after {updates:,} updates: training has diverged. Lower "
            f"learning_rate={config.learning_rate:g}, or scale the rewards to about 1 in size."
        )


def _refuse(what: str, rows: np.ndarray, where: str, name: str) -> None:
    bad = np.argwhere(~np.isfinite(rows))  # (found, 2)
    if len(bad):
        env, column = map(int, bad[0])
        place = f"[{column}]" if what == "observation" else ""
        raise EnvError(f"{name}: {what}{place} is {rows[env, column]} {where.format(env=env)}; {REMEDY}")
