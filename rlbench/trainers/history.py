"""What a training run leaves behind: rows that become DataFrames, the weights, and a summary."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from torch import Tensor

EPISODE_COLUMNS = ("env_step", "seconds", "episode_return", "length")
LOG_START, LOG_END = ("env_step", "seconds", "updates"), ("sps", "mean_return")  # between them, a trainer's own
EVALUATION_COLUMNS = ("env_step", "seconds", "mean_return", "std_return", "episodes")


@dataclass
class History:
    """Everything that happened in a run. Seconds count from the start of training, evaluations left out."""

    config: dict[str, Any]
    choices: dict[str, str]
    machine: dict[str, Any]
    network: dict[str, Any]  # its parameters, and operations of a forward pass and of an update
    seed: int
    env: str
    log_numbers: tuple[str, ...] = ("loss",)  # what the trainer notes at a log point
    episode_rows: list[tuple] = field(default_factory=list)
    log_rows: list[tuple] = field(default_factory=list)
    evaluation_rows: list[tuple] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)  # of the final policy, an episode each
    strength: dict[str, Any] = field(default_factory=dict)  # of a game's final policy, by opponent
    weights: dict[str, Tensor] = field(default_factory=dict)  # of the network that acts, on the CPU
    env_steps: int = 0
    updates: int = 0
    target_syncs: int = 0
    train_s: float = 0.0
    compile_s: float = 0.0
    recompiles: int = 0  # compilations beyond the first of each function
    skipped_updates: int = 0  # for infinite gradients under loss scaling
    total_s: float = 0.0
    sps: float = float("nan")
    interrupted: bool = False

    @property
    def episodes(self) -> pd.DataFrame:
        """One row a training episode, as it ended."""
        return pd.DataFrame(self.episode_rows, columns=list(EPISODE_COLUMNS))

    @property
    def evaluations(self) -> pd.DataFrame:
        """One row an evaluation of the greedy policy; the last is the final one."""
        return pd.DataFrame(self.evaluation_rows, columns=list(EVALUATION_COLUMNS))

    def to_frame(self) -> pd.DataFrame:
        """One row a log point: means since the one before; `mean_return` is that of the last 100 training episodes."""
        return pd.DataFrame(self.log_rows, columns=[*LOG_START, *self.log_numbers, *LOG_END])

    @property
    def mean_return(self) -> float:
        """Mean return of the final greedy policy; NaN where it was not evaluated."""
        return sum(self.returns) / len(self.returns) if self.returns else float("nan")

    @property
    def eval_episodes(self) -> int:
        return len(self.returns)

    @property
    def weights_sha256(self) -> str:
        """A digest of names, shapes and bytes of the weights."""
        digest = hashlib.sha256()
        for name, tensor in self.weights.items():
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
            digest.update(tensor.contiguous().numpy().tobytes())  # sync: the weights are on the CPU
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """What `rlbench train --json` prints. Plain Python values; NaN is None."""

        def number(value: float) -> float | None:
            return None if value != value else value

        return {
            "env": self.env,
            "env_steps": self.env_steps,
            "updates": self.updates,
            "target_syncs": self.target_syncs,
            "train_s": self.train_s,
            "compile_s": self.compile_s,
            "recompiles": self.recompiles,
            "skipped_updates": self.skipped_updates,
            "sps": number(self.sps),
            "total_s": self.total_s,
            "mean_return": number(self.mean_return),
            "eval_episodes": self.eval_episodes,
            **({"strength": self.strength} if self.strength else {}),
            "interrupted": self.interrupted,
            "seed": self.seed,
            "config": self.config,
            "choices": self.choices,
            "network": self.network,
            "machine": self.machine,
            "weights_sha256": self.weights_sha256,
        }
