"""Single environments that start their episodes from the same numbers as the batch envs, so that executors can be compared."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from rlbench.envs.batch_cartpole import start_value
from rlbench.envs.source import is_cart_pole, trading_arguments
from rlbench.envs.spaces import EnvError
from rlbench.random import Purpose, random_bits, to_below


def can_hash_starts(env: Any) -> bool:
    """Whether `HashedStarts` takes an env: a `TradingEnv` or Gymnasium's CartPole-v1, wrapped in nothing else."""
    return is_cart_pole(env) or trading_arguments(env) is not None


class HashedStarts(gymnasium.Wrapper):
    """Environment `index` of many, whose e-th `reset` starts from the hash of (seed, e, index) as in `BatchTrading` and
    `BatchCartPole`, whatever seed `reset` is given.

    A `TradingEnv` with `random_start=False` starts where it always does. A step costs nothing more: `step` is the inner env's.

    Raises:
        EnvError: for any other environment.
    """

    def __init__(self, env: gymnasium.Env, seed: int, index: int) -> None:
        if not can_hash_starts(env):
            raise EnvError(
                f"{env} cannot start from hashed numbers; accepted are a TradingEnv and gymnasium.make('CartPole-v1') "
                "without further wrappers. Step any other environment with its own seeds."
            )
        super().__init__(env)
        self.seed, self.index = seed, index
        self.episode = 0  # the one that the next reset begins
        self._trading = trading_arguments(env) is not None
        self.step = env.step

    @property
    def spec(self) -> Any:
        """The inner env's: Gymnasium would copy it, market and all."""
        return self.env.spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Begin the next episode; `seed` reaches the inner env, which draws nothing from it that matters here."""
        if options:
            raise ValueError(
                f"reset options {sorted(options)} are refused: the hash chooses the start; leave them out."
            )
        episode, self.episode = self.episode, self.episode + 1
        if self._trading:
            return self.env.reset(seed=seed, options=self._bar(episode))
        _, info = self.env.reset(seed=seed)
        cells = range(4 * self.index, 4 * self.index + 4)
        state = np.array([start_value(self.seed, episode, cell) for cell in cells])  # (4,) float64
        self.unwrapped.state = state
        return state.astype(np.float32), info

    def _bar(self, episode: int) -> dict[str, int] | None:
        env = self.unwrapped
        if not env.random_start:
            return None
        first = env.window - 1
        starts = len(env.market.close) - (env.episode_length or 1) - first  # how many bars may be one
        return {"start": first + to_below(random_bits(self.seed, Purpose.RESET, episode, self.index), starts)}
