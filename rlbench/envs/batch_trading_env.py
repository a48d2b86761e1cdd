"""The Gymnasium face of `BatchTrading`: a `VectorEnv` that any library can train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from rlbench.envs.batch_trading import BatchTrading, TradingState

if TYPE_CHECKING:
    from rlbench.market import Market


class BatchTradingEnv(gymnasium.vector.VectorEnv):
    """N trading accounts as one vector env, in SAME_STEP autoreset mode with true last observations in `final_obs`.

    Takes the arguments of `BatchTrading`. Arrays that are handed out are new at every step. For tensors that never leave the
    device use `.core`, whose `reset` and `step` are pure functions.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self, market: Market | Sequence[Market], num_envs: int = 1024, device: str = "cpu", **arguments: Any
    ) -> None:
        self.core = BatchTrading(market, num_envs, device, **arguments)
        self.num_envs, self.layout = self.core.num_envs, self.core.layout
        bound = np.full(self.core.obs_size, self.core.clip, np.float32)  # (D,)
        bound[-2] = max(1.0, *map(abs, self.core.positions))
        self.single_observation_space = gymnasium.spaces.Box(-bound, bound, dtype=np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(len(self.core.positions))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._state: TradingState | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all episodes anew. A `seed` (the first of a sequence) replaces the constructor's.

        `options={"start": bars}` chooses the first bars (N,).
        """
        if seed is not None:
            self.core.seed = int(np.ravel(seed)[0])
        unknown = set(options or {}) - {"start"}
        if unknown:
            raise ValueError(f"reset options {sorted(unknown)} are unknown; accepted: 'start', the first bars.")
        start = (options or {}).get("start")
        chosen = None if start is None else torch.as_tensor(np.asarray(start, np.int64))
        self._state, obs = self.core.reset(chosen)
        return obs.cpu().numpy(), self._info(self._state)

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Fill actions (N,) and go on to the next bar; `info` has `equity` and `position` where the step led."""
        if self._state is None:
            raise RuntimeError("The episodes have not begun; call reset() before step().")
        action = np.asarray(actions, np.int64)
        if action.shape != (self.num_envs,) or action.min() < 0 or action.max() >= len(self.core.positions):
            raise ValueError(
                f"actions={action!r} are refused; accepted: ({self.num_envs},) from 0 to {len(self.core.positions) - 1}."
            )
        self._state, step = self.core.step(self._state, torch.from_numpy(action).to(self.core.device))
        terminated, truncated = step.terminated.cpu().numpy(), step.truncated.cpu().numpy()
        ended = terminated | truncated
        info = self._info(self._state)
        if ended.any():
            info |= self._finals(ended, step.next_obs)
        return step.obs.cpu().numpy(), step.reward.cpu().numpy(), terminated, truncated, info

    def _finals(self, ended: np.ndarray, next_obs: torch.Tensor) -> dict[str, Any]:
        last = next_obs.cpu().numpy()
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            final[i] = last[i]
        return {"final_obs": final, "_final_obs": ended}

    def _info(self, state: TradingState) -> dict[str, Any]:
        return {"equity": state.equity.cpu().numpy(), "position": state.position.cpu().numpy()}
