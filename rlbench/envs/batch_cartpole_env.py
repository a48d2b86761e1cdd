"""The Gymnasium face of `BatchCartPole`: a `VectorEnv` that any library can train on."""

from __future__ import annotations

import gymnasium
import numpy as np

from rlbench.envs.batch_cartpole import MOST_ANGLE, MOST_POSITION, BatchCartPole
from rlbench.envs.batch_vector_env import BatchVectorEnv


class BatchCartPoleEnv(BatchVectorEnv):
    """N poles as one vector env with the spaces of CartPole-v1; see `BatchVectorEnv`. Takes the arguments of `BatchCartPole`.

    `reset(options={"start": values})` chooses x, x_dot, theta and theta_dot (N, 4).
    """

    start_dtype, start_means = np.float64, "x, x_dot, theta and theta_dot, a row for each pole"

    def __init__(self, num_envs: int = 1024, device: str = "cpu", seed: int = 0, max_episode_steps: int = 500) -> None:
        bound = np.array([2 * MOST_POSITION, np.inf, 2 * MOST_ANGLE, np.inf], np.float32)  # (D,)
        super().__init__(
            BatchCartPole(num_envs, device, seed, max_episode_steps),
            gymnasium.spaces.Box(-bound, bound, dtype=np.float32),
            gymnasium.spaces.Discrete(2),
        )
