"""Collector that steps plain Gymnasium environments, one after another, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlbench.batch import Collected
from rlbench.envs.spaces import OLD_STYLE, EnvError, EnvSpec, describe_spaces, layout_of, mask_of, reset_env
from rlbench.random import Purpose, random_bits


def env_seed(seed: int, purpose: Purpose, index: int) -> int:
    """The seed of one environment of many."""
    return int(random_bits(seed, purpose, 0, index)) >> 1  # 31 bits: some environments take no more


class OneByOne:
    """N environments; one that ends is reset at once, after its true last observation has been kept.

    `obs` (N, D) and `mask` ((N, A) bool or None) describe the states to act in. All arrays that are handed out are copies:
    an environment may overwrite its own.
    """

    def __init__(self, envs: Sequence[Any], seed: int, purpose: Purpose = Purpose.RESET, name: str = "") -> None:
        self.envs = list(envs)
        first = self.envs[0]
        self.name = name or _name_of(first)
        self.spec: EnvSpec = describe_spaces(first.observation_space, first.action_space, self.name, layout_of(first))
        self.finished: list[tuple[float, int]] = []  # (return, length) of episodes that ended in the last step
        shape = (len(self.envs), self.spec.obs_size)
        self.obs = np.empty(shape, np.float32)  # (N, D)
        masks = []
        for i, env in enumerate(self.envs):
            obs, info = reset_env(env, self.name, env_seed(seed, purpose, i))
            self._store(self.obs, i, obs)
            masks.append(mask_of(info, self.name, self.spec.num_actions))
        self.masked = masks[0] is not None
        self.mask = np.stack([self._need(mask) for mask in masks]) if self.masked else None  # (N, A)
        self._returns = [0.0] * len(self.envs)
        self._lengths = [0] * len(self.envs)

    @property
    def num_envs(self) -> int:
        return len(self.envs)

    def step(self, actions: np.ndarray) -> Collected:
        """Take action `actions[i]` (int64, counted from 0) in environment i. All N rows are real transitions."""
        n = len(self.envs)
        obs, mask = self.obs, self.mask
        next_obs = np.empty_like(obs)
        next_mask = np.empty_like(mask) if mask is not None else None
        reward, terminated, truncated = np.empty(n), np.empty(n, bool), np.empty(n, bool)
        self.finished = []
        ended: list[int] = []
        for i, (env, action) in enumerate(zip(self.envs, actions.tolist(), strict=True)):
            result = env.step(action + self.spec.first_action)
            if len(result) != 5:
                raise EnvError(OLD_STYLE.format(name=self.name, call="step", found=f"{len(result)} values"))
            try:
                after, reward[i], terminated[i], truncated[i], info = result
            except (TypeError, ValueError) as error:
                raise EnvError(f"{self.name} gave the reward {result[1]!r}; accepted is one number a step.") from error
            self._store(next_obs, i, after)
            if next_mask is not None:
                next_mask[i] = self._need(mask_of(info, self.name, self.spec.num_actions), bool(terminated[i]))
            self._returns[i] += float(result[1])
            self._lengths[i] += 1
            if result[2] or result[3]:
                ended.append(i)
        self.obs, self.mask = next_obs, next_mask
        if ended:
            self._restart(ended)
        return Collected(obs, actions, reward, next_obs, terminated, truncated, next_mask, None)

    def _restart(self, ended: list[int]) -> None:
        self.obs = self.obs.copy()  # the rows handed out keep the true last observations
        self.mask = None if self.mask is None else self.mask.copy()
        for i in ended:
            self.finished.append((self._returns[i], self._lengths[i]))
            self._returns[i], self._lengths[i] = 0.0, 0
            obs, info = reset_env(self.envs[i], self.name)
            self._store(self.obs, i, obs)
            if self.mask is not None:
                self.mask[i] = self._need(mask_of(info, self.name, self.spec.num_actions))

    def _store(self, rows: np.ndarray, i: int, obs: Any) -> None:
        try:
            rows[i] = obs if np.ndim(obs) == 1 else np.reshape(obs, -1)
        except (TypeError, ValueError) as error:
            raise EnvError(
                f"{self.name} gave an observation of shape {np.shape(obs)}; its observation_space says {self.spec.obs_shape}."
            ) from error

    def _need(self, mask: np.ndarray | None, terminated: bool = False) -> np.ndarray:
        """A mask in every info once there is one in the first: a state without one cannot be told from one with all legal."""
        if mask is None and terminated:
            return np.zeros(self.spec.num_actions, bool)  # nothing is legal where a game is over
        if mask is None:
            raise EnvError(
                f"{self.name} gave info['action_mask'] at its first reset, but not now: give it at every step."
            )
        return mask

    def close(self) -> None:
        for env in self.envs:
            env.close()


def _name_of(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return spec.id if spec is not None else type(getattr(env, "unwrapped", env)).__name__
