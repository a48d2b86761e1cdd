"""What training on recorded games leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

COLUMNS = (
    "epoch",
    "seconds",  # without compilation
    "loss",  # this and the next five are means over the epoch's minibatches
    "policy_loss",
    "value_loss",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "first_ratio_error",  # largest |ratio - 1| in the epoch's first minibatch
    "renewed",  # whether advantages, and old log-probabilities where they are recomputed, were made anew before it
    "learning_rate",
    "minibatches",
    "episodes_per_s",
    "samples_per_s",
)
LOSSES = COLUMNS[2:8]


@dataclass
class RecordedHistory:
    """A row an epoch: one pass over all samples."""

    config: dict[str, Any]
    choices: dict[str, str]
    game: str
    episodes: int
    samples: int
    batch_by: str
    rows: list[tuple] = field(default_factory=list)
    updates: int = 0
    train_s: float = 0.0  # without compilation
    compile_s: float = 0.0
    recompiles: int = 0  # compilations beyond the first of each function
    skipped_updates: int = 0  # for infinite gradients under loss scaling
    interrupted: bool = False

    def add(
        self,
        seconds: float,
        losses: Mapping[str, float],
        first_ratio_error: float,
        renewed: bool,
        learning_rate: float,
        minibatches: int,
    ) -> None:
        """Note an epoch."""
        numbers = tuple(losses[name] for name in LOSSES)
        rates = (self.episodes / max(seconds, 1e-9), self.samples / max(seconds, 1e-9))
        counted = (first_ratio_error, renewed, learning_rate, minibatches, *rates)
        self.rows.append((len(self.rows) + 1, seconds, *numbers, *counted))
        self.updates += minibatches
        self.train_s += seconds

    def to_frame(self) -> pd.DataFrame:
        """One row an epoch."""
        return pd.DataFrame(self.rows, columns=list(COLUMNS))

    def summary(self) -> dict[str, Any]:
        """Plain Python values: counts, seconds, throughput over all epochs, and the last epoch's losses."""
        kept = ("game", "episodes", "samples", "batch_by", "updates", "train_s", "compile_s", "recompiles")
        passes = len(self.rows) / self.train_s if self.train_s else 0.0
        last = dict(zip(COLUMNS, self.rows[-1], strict=True)) if self.rows else {}
        return {
            "epochs": len(self.rows),
            **{name: getattr(self, name) for name in (*kept, "skipped_updates", "interrupted")},
            "episodes_per_s": passes * self.episodes,
            "samples_per_s": passes * self.samples,
            **{name: last[name] for name in LOSSES if last},
            "config": self.config,
            "choices": self.choices,
        }
