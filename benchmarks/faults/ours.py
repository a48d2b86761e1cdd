"""The faults planted in our own trainers: by Choices, settings, threads, or an environment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SETTINGS = {
    "hidden": (128, 128),
    "batch_size": 128,
    "train_frequency": 1,
    "num_envs": 1,
    "learning_starts": 150,
    "seed": 1,
}


@dataclass(frozen=True)
class Planted:
    """A pair of trainings that differ in one thing. `slots` and `settings` are those of the slow one, `healthy` of the other."""

    env: str = "CartPole-v1"
    trainer: str = "dqn"
    slots: Mapping[str, str] = field(default_factory=dict)
    healthy_slots: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1
    slow_env: str | None = None

    @property
    def base(self) -> dict[str, Any]:
        """Settings of both sides."""
        if self.trainer == "ppo":
            return {"hidden": (64, 64), "num_envs": 8, "num_steps": 32, "batch_size": 64, "update_epochs": 1, "seed": 1}
        return dict(SETTINGS)

    def arguments(self) -> list[str]:
        """The slow one, as words for `rlbench profile`."""
        words = [
            self.trainer,
            "--env",
            self.slow_env or self.env,
            "--threads",
            str(self.threads),
            "--total-timesteps",
            "1000000",
        ]
        for name, value in (self.base | dict(self.settings)).items():
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += ["--" + name.replace("_", "-"), text]
        slots = ({"loop": "python"} if self.trainer == "dqn" else {}) | dict(self.slots)
        return words + [word for slot, variant in slots.items() for word in ("--set", f"{slot}={variant}")]


PLANTED = {
    "env_waits": Planted(slow_env="benchmarks.faults.ours:sleeping"),
    "sync_each_step": Planted(slots={"metrics": "item_each_step"}),
    "loop_over_samples": Planted(
        env="othello4", trainer="ppo", slots={"evaluate": "loop"}, healthy_slots={"evaluate": "packed"}
    ),
    "stacked_replay": Planted(slots={"replay": "deque", "conversion": "each_sample"}),
    "recomputed_features": Planted(env="trading", slots={"features": "per_step"}),
    "file_each_episode": Planted(env="minutes", slots={"market_io": "read_each_episode"}),
    "too_many_threads": Planted(threads=8),
    "too_wide": Planted(settings={"hidden": (1280, 1280)}),
    "small_batch": Planted(settings={"batch_size": 1}),
}


def sleeping() -> Any:
    """CartPole that waits 30 ms in each step."""
    import gymnasium

    class Sleeping(gymnasium.Wrapper):
        def step(self, action: Any) -> Any:
            time.sleep(0.03)
            return self.env.step(action)

    return Sleeping(gymnasium.make("CartPole-v1"))
