"""Which slot to try first: that of the part of a training that takes the most time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlbench.phases import PhaseClock
from rlbench.tuning.contender import Contender

LEARNING = ("forward", "backward", "optimizer", "update")
EVERYTHING = ""
# Phases whose time a slot can change, by what the trainers name; `iterations` of a loop are everything at once.
PHASES_OF = {
    "loop": (EVERYTHING,),
    "precision": (*LEARNING, "action"),
    "backend": LEARNING,
    "update": LEARNING,
    "ppo_update": LEARNING,
    "evaluate": (*LEARNING, "action", "old_log_probs"),
    "environments": ("env",),
    "games": ("env",),
    "market_io": ("env",),
    "features": ("env",),
    "action_encoding": ("env", "action"),
    "optimizer": ("optimizer",),
    "replay": ("store", "sample"),
    "priorities": ("sample",),
    "conversion": ("sample", "transfer"),
    "transfer": ("transfer",),
    "upload": ("transfer",),
    "minibatch": ("sample", "transfer"),
    "gae": ("advantages",),
    "old_log_probs": ("old_log_probs",),
    "metrics": ("sync",),
    "threads": (*LEARNING, "action", "iterations"),
    "chunks": ("iterations", "backward"),
}


def shares(contender: Contender, seconds: float) -> dict[str, float]:
    """Share of each phase in a short block, 0 … 1; never timed against another."""
    with PhaseClock(contender.device) as clock:
        contender.block(seconds)
    return clock.shares


def in_order(names: Sequence[str], by_phase: Mapping[str, float]) -> list[str]:
    """By the time of their phases, the longest first; those of equal share as they came."""

    def share(name: str) -> float:
        phases = PHASES_OF.get(name, ())
        return 1.0 if EVERYTHING in phases else sum(by_phase.get(phase, 0.0) for phase in phases)

    return sorted(names, key=share, reverse=True)
