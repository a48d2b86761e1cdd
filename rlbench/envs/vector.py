"""Collector for any `gymnasium.vector.VectorEnv`, in each of its three autoreset modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlbench.batch import Collected
from rlbench.envs.episodes import EpisodeSums
from rlbench.envs.one_by_one import env_seed
from rlbench.envs.spaces import EnvError, EnvSpec, describe_spaces, layout_of
from rlbench.random import Purpose

OVERWRITTEN = (
    "{name}: infos['final_obs'] holds the observation of the reset, not the last one of the episode. An environment that "
    "overwrites its own arrays loses it in SAME_STEP mode: return copies, or use AutoresetMode.NEXT_STEP or DISABLED."
)


class VectorCollector:
    """Turns what a vector env returns into real transitions with their true last observations.

    - NEXT_STEP (Gymnasium's default): the call after an end ignores the action and hands back the reset observation. That row
      is not a transition: `valid` is False for it.
    - SAME_STEP: the returned observation is already the next episode's; the last one is in `infos["final_obs"]`. Gymnasium keeps
      a reference there, not a copy: an environment that overwrites its arrays has lost it, which is refused.
    - DISABLED: ended environments are reset here, with `options={"reset_mask": …}`.

    Everything handed out is a copy, so that `copy=False` vector envs are safe.
    """

    def __init__(self, envs: Any, seed: int, name: str = "") -> None:
        from rlbench.envs.batch_vector_env import BatchVectorEnv  # needs Gymnasium, as `envs` does

        self.envs = envs
        self.num_envs = int(envs.num_envs)
        spec = getattr(envs, "spec", None)
        self.name = name or (spec.id if spec is not None else type(envs).__name__)
        self.spec: EnvSpec = describe_spaces(
            envs.single_observation_space, envs.single_action_space, self.name, layout_of(envs)
        )
        self.mode = autoreset_mode(envs, self.name)
        self.hands_out_copies = isinstance(envs, BatchVectorEnv)
        self.finished: list[tuple[float, int]] = []
        obs, infos = self._first_reset(seed)
        self.obs = self._rows(obs)  # (N, D)
        self.mask = self._masks(infos)  # (N, A) or None
        self.masked = self.mask is not None
        self._sums = EpisodeSums(self.num_envs)
        self._resetting = np.zeros(self.num_envs, bool)  # NEXT_STEP: the coming call only resets these

    def _first_reset(self, seed: int) -> tuple[Any, dict]:
        """Seed each environment by itself, or, where the vector env takes one number for all, with the first's.

        The face of a batch env takes the seed itself, from which its core starts in every other loop.
        """
        if self.hands_out_copies:
            return self.envs.reset(seed=seed)
        seeds = [env_seed(seed, Purpose.RESET, i) for i in range(self.num_envs)]
        import gymnasium

        try:
            return self.envs.reset(seed=seeds)
        except (TypeError, gymnasium.error.Error):
            return self.envs.reset(seed=seeds[0])

    def step(self, actions: np.ndarray) -> Collected:
        """Take action `actions[i]` (int64, counted from 0) in environment i; see the class for `valid`."""
        obs = self.obs
        after, reward, terminated, truncated, infos = self.envs.step(actions + self.spec.first_action)
        terminated, truncated = np.array(terminated, bool), np.array(truncated, bool)
        reward = np.array(reward, np.float64)
        valid = None if not self._resetting.any() else ~self._resetting
        ended = terminated | truncated
        self.obs, self.mask = self._rows(after), self._masks(infos)
        next_obs, next_mask = self.obs, self.mask
        self.finished = self._sums.add(reward, ended, valid)
        if ended.any():
            if self.mode == "SAME_STEP":
                next_obs, next_mask = self._final(infos, ended, obs)
            elif self.mode == "DISABLED":
                self._reset_ended(ended)
        self._resetting = ended if self.mode == "NEXT_STEP" else self._resetting
        if next_mask is None and self.masked:
            raise EnvError(f"{self.name} gave infos['action_mask'] at its reset, but not now: give it at every step.")
        return Collected(obs, actions, reward, next_obs, terminated, truncated, next_mask, valid)

    def _final(self, infos: dict, ended: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        next_obs = self.obs.copy()
        next_mask = None if self.mask is None else self.mask.copy()
        for i in np.flatnonzero(ended):
            if infos.get("final_obs") is None or infos["final_obs"][i] is None:
                raise EnvError(f"{self.name} resets in the same step but gives no infos['final_obs'][{i}].")
            next_obs[i] = np.reshape(infos["final_obs"][i], -1)
            if self.hands_out_copies:
                pass  # an episode may well end where the next one starts
            elif np.array_equal(next_obs[i], self.obs[i]) and not np.array_equal(next_obs[i], before[i]):
                raise EnvError(OVERWRITTEN.format(name=self.name))
            if next_mask is not None:
                final = infos.get("final_info", {}).get("action_mask")
                next_mask[i] = False if final is None else final[i]
        return next_obs, next_mask

    def _reset_ended(self, ended: np.ndarray) -> None:
        after, infos = self.envs.reset(options={"reset_mask": ended})
        self.obs = self._rows(after)
        fresh = self._masks(infos)
        if self.mask is not None and fresh is not None:
            self.mask = np.where(ended[:, None], fresh, self.mask)

    def _rows(self, obs: Any) -> np.ndarray:
        return np.array(obs, np.float32).reshape(self.num_envs, -1)

    def _masks(self, infos: dict) -> np.ndarray | None:
        masks = infos.get("action_mask")
        if masks is None:
            return None
        return np.array([np.zeros(self.spec.num_actions, bool) if m is None else m for m in masks], bool)

    def close(self) -> None:
        self.envs.close()


def autoreset_mode(envs: Any, name: str) -> str:
    """NEXT_STEP, SAME_STEP or DISABLED, as the vector env's metadata says; without a word, Gymnasium's default."""
    mode = envs.metadata.get("autoreset_mode", "NEXT_STEP")
    word = getattr(mode, "name", str(mode)).upper()
    if word not in ("NEXT_STEP", "SAME_STEP", "DISABLED"):
        raise EnvError(f"{name}: autoreset mode {mode!r}; accepted are NEXT_STEP, SAME_STEP and DISABLED.")
    return word
