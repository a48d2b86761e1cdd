"""For a training of ours: the Choices and settings that do what an advice says, where they can be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from rlbench.profiling.evidence import Evidence, TrainerRun
from rlbench.profiling.findings import Advice

# By rule, the choices that answer it, best first; of these the first that is usable and not in use is given.
ANSWERS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "stacked_replay": (
        {"replay": "ring_numpy", "conversion": "stack_once"},
        {"replay": "ring_numpy"},
        {"conversion": "stack_once"},
        {"minibatch": "index_views"},
    ),
    "loop_over_samples": (
        *({"evaluate": variant} for variant in ("packed_native", "packed", "padded")),
        *({"replay": "ring_numpy", "conversion": "stack_once"}, {"conversion": "stack_once"}, {"gae": "scan"}),
    ),
    "sync_each_step": ({"metrics": "on_device"},),
    "recomputed_features": ({"features": "table"},),
    "file_each_episode": ({"market_io": "in_memory"},),
    "fused_optimizer": ({"optimizer": "fused"},),
    "update_in_one_call": tuple({slot: "native"} for slot in ("update", "ppo_update"))
    + tuple({slot: "compiled"} for slot in ("update", "ppo_update")),
    "whole_loop": ({"loop": "native"}, {"loop": "fused"}),
    "several_envs": tuple({"environments": variant} for variant in ("native", "batched")),
}


def with_choice(advice: Advice, evidence: Evidence) -> Advice:
    """The advice with a choice that the trainer of this run can take; without one for a script."""
    run = evidence.run
    if run is None:
        return replace(advice, choice={})
    if advice.name in ANSWERS:
        usable = (choice for choice in ANSWERS[advice.name] if can_use(run, choice))
        return replace(advice, choice=next(usable, {}))
    return replace(advice, choice={k: v for k, v in advice.choice.items() if k == "threads" or hasattr(run.config, k)})


def can_use(run: TrainerRun, choice: Mapping[str, Any]) -> bool:
    """Whether all of these slots belong to the trainer, can be used there, and say something new."""
    from rlbench.speedups import SPEEDUPS

    if any(run.trainer not in SPEEDUPS[slot].workloads for slot in choice):
        return False
    now = run.choices.to_dict()
    if all(now[slot] == variant for slot, variant in choice.items()):
        return False
    after = run.choices.replace(**choice)
    device = torch.device(run.device)
    return all(after.reason_against(slot, v, run.config, device, run.source) is None for slot, v in choice.items())
