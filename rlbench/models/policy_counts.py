"""What PPO's policies cost, as the row of a table."""

from __future__ import annotations

from typing import Any

from torch import nn

from rlbench.actions import BITS
from rlbench.config import PPOConfig
from rlbench.models.action_scorer import ActionScorer
from rlbench.models.actor_critic import ActorCritic
from rlbench.models.counts import network_flops, parameter_count


def describe_policy(config: PPOConfig, model: nn.Module) -> dict[str, Any]:
    """network, hidden, parameters, forward_flops (a state), update_flops (a minibatch); and of a scorer of actions
    action_flops, those of one legal action in a forward pass, which come on top of either, in an update three times.

    Operations are those of the matrix products: backward, one for the weights of each layer and one for the inputs of each but
    the first, which sees the observation. An action's are counted as the dense product of its 64 bits.
    """
    networks = [model.actor, model.critic] if isinstance(model, ActorCritic) else [model.state, model.join, model.value]
    first = sum(network_flops(network[0]) for network in networks if isinstance(network, nn.Sequential))
    forward = sum(network_flops(network) for network in networks)
    row: dict[str, Any] = {
        "network": "action_scorer" if isinstance(model, ActionScorer) else "actor_critic",
        "hidden": "-".join(map(str, config.hidden)),
        "parameters": parameter_count(model),
        "forward_flops": forward,
        "update_flops": config.batch_size * (3 * forward - first),
    }
    if isinstance(model, ActionScorer):
        row["action_flops"] = 2 * config.hidden[-1] * (BITS + 1)
    return row
