"""Evaluation of a fixed policy on fresh environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlbench.envs.one_by_one import env_seed
from rlbench.envs.spaces import describe_spaces, mask_of, reset_env
from rlbench.random import Purpose
from rlbench.trainers.finite import check_evaluation

# (N, D) float32 observations and (N, A) legal actions or None -> (N,) int64 actions
Policy = Callable[[np.ndarray, "np.ndarray | None"], np.ndarray]
MOST_ENVS = 20


def evaluate(
    policy: Policy,
    make_env: Callable[[], Any],
    episodes: int,
    seed: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[float]:
    """Undiscounted returns of `episodes` whole episodes, in a fixed order; none at all where `should_stop` said so.

    Environments run side by side so that the policy acts on a batch, but each has its own number of episodes to finish: to
    take whichever episodes end first would favour short ones.
    """
    if episodes < 1:
        return []
    count = min(episodes, MOST_ENVS)
    envs = [make_env() for _ in range(count)]
    try:
        quota = [episodes // count + (i < episodes % count) for i in range(count)]
        return _run(policy, envs, quota, seed, should_stop)
    finally:
        for env in envs:
            env.close()


def _run(policy: Policy, envs: list[Any], quota: list[int], seed: int, should_stop: Callable[[], bool]) -> list[float]:
    spec = describe_spaces(envs[0].observation_space, envs[0].action_space, "the evaluation env")
    obs = np.empty((len(envs), spec.obs_size), np.float32)  # (N, D)
    masks: list[Any] = [None] * len(envs)  # each (A,) bool, or None
    returns: list[list[float]] = [[] for _ in envs]
    running, lengths = [0.0] * len(envs), [0] * len(envs)

    def take(i: int, after: Any, info: dict, reward: float = 0.0) -> None:
        obs[i] = np.reshape(after, -1)
        check_evaluation(obs[i], reward, spec.name, i, lengths[i])
        masks[i] = mask_of(info, spec.name, spec.num_actions)

    for i, env in enumerate(envs):
        take(i, *reset_env(env, spec.name, env_seed(seed, Purpose.EVALUATION, i)))
    active = list(range(len(envs)))
    while active:
        if should_stop():
            return []  # the episodes that have ended are the short ones
        mask = None if masks[active[0]] is None else np.stack([masks[i] for i in active])
        actions = policy(obs[active], mask)
        for i, action in zip(list(active), actions.tolist(), strict=True):
            after, reward, terminated, truncated, info = envs[i].step(action + spec.first_action)
            running[i], lengths[i] = running[i] + float(reward), lengths[i] + 1
            take(i, after, info, float(reward))
            if not (terminated or truncated):
                continue
            returns[i].append(running[i])
            running[i], lengths[i] = 0.0, 0
            if len(returns[i]) == quota[i]:
                active.remove(i)
            else:
                take(i, *reset_env(envs[i], spec.name))
    return [value for each in returns for value in each]
