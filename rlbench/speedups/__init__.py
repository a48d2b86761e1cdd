"""The slots: one optimization, one file. `SPEEDUPS` is what tests, measurements, notebooks and panels are made from."""

from typing import Any

from rlbench.speedups import (
    action_encoding,
    backend,
    conversion,
    environments,
    evaluate,
    features,
    gae,
    games,
    loop,
    market_io,
    metrics,
    minibatch,
    old_log_probs,
    optimizer,
    ppo_update,
    precision,
    priorities,
    replay,
    transfer,
    update,
    upload,
)
from rlbench.speedups.choices import ChoiceError, Choices
from rlbench.speedups.speedup import Speedup

SPEEDUPS: dict[str, Speedup] = {
    module.SPEEDUP.name: module.SPEEDUP
    for module in (
        loop,
        market_io,
        features,
        environments,
        replay,
        priorities,
        conversion,
        transfer,
        update,
        precision,
        optimizer,
        metrics,
        backend,
        games,
        action_encoding,
        evaluate,
        gae,
        old_log_probs,
        upload,
        minibatch,
        ppo_update,
    )
}


def variants_for(choices: Choices, trainer: str = "dqn") -> dict[str, Any]:
    """The variant of every slot of a trainer; where a loop leaves no choice, the one that it works with."""
    chosen = choices.to_dict() | (loop.WORKS_WITH[choices.loop] if trainer == "dqn" else {})
    return {name: slot.variants[chosen[name]] for name, slot in SPEEDUPS.items() if trainer in slot.workloads}


__all__ = ["SPEEDUPS", "ChoiceError", "Choices", "Speedup", "variants_for"]
