"""The Gymnasium face of a batch env: a `VectorEnv` that any library can train on."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from torch import Tensor

from rlbench.envs.batch import BatchEnv


class BatchVectorEnv(gymnasium.vector.VectorEnv):
    """A `BatchEnv` as a vector env, in SAME_STEP autoreset mode with true last observations in `final_obs`.

    Arrays that are handed out are copies: nothing overwrites them later, and writing to them changes nothing here. For tensors
    that never leave the device use `.core`, whose `reset` and `step` are pure functions.

    Subclasses may say what `info` has, and what `reset(options={"start": …})` takes.

    Raises:
        ValueError: where the spaces are not those of the core.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 (Gymnasium's own form)
    start_dtype: ClassVar[type | None] = None  # of the starts that the core's `reset` takes; None: it takes none
    start_means: ClassVar[str] = ""

    def __init__(
        self,
        core: BatchEnv,
        single_observation_space: gymnasium.spaces.Box,
        single_action_space: gymnasium.spaces.Discrete,
    ) -> None:
        found = single_observation_space.shape, int(single_action_space.n)
        if found != ((core.obs_size,), core.num_actions):
            raise ValueError(
                f"spaces of shape {found[0]} and {found[1]} actions are refused; accepted for {core.name}: "
                f"({core.obs_size},) and {core.num_actions} actions."
            )
        self.core = core
        self.num_envs, self.layout = core.num_envs, core.layout
        self.single_observation_space, self.single_action_space = single_observation_space, single_action_space
        self.observation_space = batch_space(single_observation_space, self.num_envs)
        self.action_space = batch_space(single_action_space, self.num_envs)
        self._first_action = int(single_action_space.start)
        self._state: Any = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all episodes anew. A `seed` (the first of a sequence) replaces the constructor's.

        `options={"start": …}`, an array with a row an environment, chooses the starts where the core takes them.
        """
        chosen = self._chosen(options or {})
        first = None if seed is None else np.ravel(seed)[0]
        if first is not None:
            self.core.seed = int(first)
        self._state, obs = self.core.reset() if chosen is None else self.core.reset(chosen)
        return host_copy(obs), self._info(self._state)

    def _chosen(self, options: dict[str, Any]) -> Tensor | None:
        known = {"start"} if self.start_dtype else set()
        if unknown := set(options) - known:
            accepted = f"'start', {self.start_means}" if known else "none"
            raise ValueError(f"reset options {sorted(unknown)} are unknown; accepted: {accepted}.")
        start = options.get("start")
        if start is None:
            return None
        try:
            return torch.from_numpy(np.array(start).astype(self.start_dtype, casting="same_kind"))
        except (TypeError, ValueError) as error:
            raise ValueError(f"start={start!r} is refused ({error}); accepted: {self.start_means}.") from error

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take actions (N,), whole numbers; `info` speaks of the states that the step led to."""
        if self._state is None:
            raise RuntimeError("The episodes have not begun; call reset() before step().")
        self._state, step = self.core.step(self._state, self._checked(actions).to(self.core.device))
        terminated, truncated = host_copy(step.terminated), host_copy(step.truncated)
        ended = terminated | truncated
        info = self._info(self._state)
        if ended.any():
            info |= self._finals(ended, step.next_obs)
        return host_copy(step.obs), host_copy(step.reward), terminated, truncated, info

    def _checked(self, actions: Any) -> Tensor:
        """Actions counted from 0, in memory of their own."""
        action, first, count = np.array(actions), self._first_action, self.core.num_actions
        if (
            action.shape != (self.num_envs,)
            or action.dtype.kind not in "iu"
            or action.min() < first
            or action.max() >= first + count
        ):
            accepted = f"({self.num_envs},) whole numbers from {first} to {first + count - 1}"
            raise ValueError(f"actions={action!r} are refused; accepted: {accepted}.")
        return torch.from_numpy(action.astype(np.int64) - first)

    def _finals(self, ended: np.ndarray, next_obs: Tensor) -> dict[str, Any]:
        last = host_copy(next_obs)
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            final[i] = last[i]
        return {"final_obs": final, "_final_obs": ended.copy()}

    def _info(self, state: Any) -> dict[str, Any]:
        """What `info` says of the environments in `state`; arrays that nobody writes to later."""
        return {}


def host_copy(tensor: Tensor) -> np.ndarray:
    """A copy in host memory."""
    return tensor.to("cpu", copy=True).numpy()
