"""The Gymnasium face of `BatchTrading`: a `VectorEnv` that any library can train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rlbench.envs.batch_trading import BatchTrading, TradingState
from rlbench.envs.batch_vector_env import BatchVectorEnv, host_copy

if TYPE_CHECKING:
    from rlbench.market import Market


class BatchTradingEnv(BatchVectorEnv):
    """N trading accounts as one vector env; see `BatchVectorEnv`. Takes the arguments of `BatchTrading`.

    `info` has `equity` and `position` where the step led; `reset(options={"start": bars})` chooses the first bars (N,).
    """

    start_dtype, start_means = np.int64, "the first bars, whole numbers"

    def __init__(
        self, market: Market | Sequence[Market], num_envs: int = 1024, device: str = "cpu", **arguments: Any
    ) -> None:
        core = BatchTrading(market, num_envs, device, **arguments)
        bound = np.full(core.obs_size, core.clip, np.float32)  # (D,)
        bound[-2] = max(1.0, *map(abs, core.positions))
        super().__init__(
            core, gymnasium.spaces.Box(-bound, bound, dtype=np.float32), gymnasium.spaces.Discrete(core.num_actions)
        )

    def _info(self, state: TradingState) -> dict[str, Any]:
        return {"equity": host_copy(state.equity), "position": host_copy(state.position)}
