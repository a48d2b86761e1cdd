"""What a trainer needs memory for besides what it holds all the time, computed from sizes, and which settings that depends on."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from rlbench.actions import BITS
from rlbench.models.action_scorer import ActionScorer
from rlbench.models.layers import PointwiseConv
from rlbench.trainers.held import Held

FLOAT = 4  # bytes
# By trainer: which setting makes a piece of memory larger, by the beginning of its name; the first one that fits.
SETTINGS = {
    "dqn": {
        "replay": "buffer_size",
        "draw.rows": "buffer_size",
        "draw": "batch_size",
        "minibatch": "batch_size",
        "activations": "batch_size",
        "online": "hidden",
        "target": "hidden",
        "apply_update": "hidden",
        "collector": "num_envs",
        "loop": "num_envs",
        "n_step": "num_envs",
        "explore": "num_envs",
    },
    "ppo": {
        "rollout": "num_steps",
        "minibatch": "batch_size",
        "activations": "batch_size",
        "model": "hidden",
        "apply_update": "hidden",
        "evaluator": "hidden",
        "collector": "num_envs",
        "rollouts": "num_envs",
    },
}


def of_an_update(trainer: Any) -> list[Held]:
    """What a minibatch takes while an update runs, and what the layers give for it; of PPO a rollout, too."""
    return {"dqn": _of_dqn, "ppo": _of_ppo}[trainer.config.trainer](trainer)


def remedy(trainer: Any) -> str:
    """What can be done besides lowering a setting, the comma before it included."""
    parts = getattr(trainer.config, "gradient_accumulation", None)
    if parts is None or trainer.choices.ppo_update == "native":  # which computes some rows at a time as it is
        return ""
    return f", or raise gradient_accumulation={parts}, the parts in which a minibatch is computed"


def _of_dqn(trainer: Any) -> list[Held]:
    """In each forward pass."""
    spec, online = getattr(trainer, "spec", None), getattr(trainer, "online", None)
    if spec is None or online is None:
        return []
    config, device = trainer.config, str(trainer.device)
    rows = config.batch_size * getattr(getattr(trainer, "apply_update", None), "chunk", 1)
    width = 2 * spec.obs_size + 5 + spec.mask_size  # two observations, five scalars, a mask
    outputs = _outputs(online)
    passes = 3 if config.double_dqn else 2
    return [
        _piece("minibatch", (rows, width), device),
        _piece("activations", (passes, config.batch_size, outputs), device),
    ]


def _of_ppo(trainer: Any) -> list[Held]:
    """States with as many actions as those have that are to be acted in next."""
    config, device, model = trainer.config, str(trainer.device), trainer.model
    if isinstance(model, ActionScorer):
        obs, legal = trainer.rollouts.obs, trainer.rollouts.legal
        features, num_envs, home = obs.shape[1], len(obs), str(obs.device)
        actions = -(-len(legal.ids) // num_envs)
        outputs = _outputs(model) + actions * (BITS + 2 * config.hidden[-1])
        sets = 2 * actions  # an id is as long as two numbers
    else:
        spec, num_envs, home = trainer.collector.spec, trainer.collector.num_envs, "cpu"
        features, sets, outputs = spec.obs_size, 0, _outputs(model)
    numbers = features + sets + 6  # choice, log-probability, value, advantage, target, offset
    rows = min(config.batch_size, config.num_steps * num_envs)
    part = -(-rows // config.gradient_accumulation)
    pieces = [
        _piece("rollout", (config.num_steps, num_envs, numbers + features), home),  # where steps led, too
        _piece("minibatch", (rows, numbers), device),
        _piece("activations", (part, outputs), device),
    ]
    if trainer.choices.upload == "whole_rollout_once" and home != device:
        pieces.append(_piece("rollout.there", (config.num_steps, num_envs, numbers), device))
    return pieces


def _outputs(network: nn.Module) -> int:
    """Numbers that the layers of a network give for one observation."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    return sum(x.out_features * (x.window if isinstance(x, PointwiseConv) else 1) for x in layers)


def _piece(name: str, shape: tuple[int, ...], device: str) -> Held:
    size = FLOAT * int(torch.Size(shape).numel())
    return Held(name, shape, device, size, size)
