"""Wrapper for environments from before Gym 0.26: `reset() -> obs`, `step() -> obs, reward, done, info`."""

from __future__ import annotations

from typing import Any

import gymnasium


class OldStyle(gymnasium.Env):
    """Gives an old-style environment Gymnasium's interface.

    `done` becomes `terminated`, except where the old `TimeLimit` wrapper says `info["TimeLimit.truncated"]`: that is `truncated`.
    Spaces are taken from the environment; those of the old `gym` package are rebuilt as Gymnasium's.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.observation_space = _space(env.observation_space)
        self.action_space = _space(env.action_space)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        if seed is not None and hasattr(self.env, "seed"):
            self.env.seed(seed)
        return self.env.reset(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        obs, reward, done, info = self.env.step(action)
        truncated = bool(done and info.get("TimeLimit.truncated", False))
        return obs, float(reward), bool(done) and not truncated, truncated, info

    def close(self) -> None:
        if hasattr(self.env, "close"):
            self.env.close()


def _space(space: Any) -> gymnasium.Space:
    if isinstance(space, gymnasium.Space):
        return space
    kind = type(space).__name__
    if kind == "Box":
        return gymnasium.spaces.Box(space.low, space.high, space.shape, space.dtype)
    if kind == "Discrete":
        return gymnasium.spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
    raise TypeError(f"OldStyle takes Box and Discrete spaces, not {kind}.")
