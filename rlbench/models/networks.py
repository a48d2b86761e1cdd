"""From settings to a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from rlbench.batch import Layout
from rlbench.config import ConfigError, DQNConfig
from rlbench.models.conv import BarConv
from rlbench.models.counts import network_flops, network_update_flops, parameter_count
from rlbench.models.dueling import Dueling
from rlbench.models.mlp import mlp

if TYPE_CHECKING:
    from rlbench.buffers.rows import RowSpec


def make_network(config: DQNConfig, spec: RowSpec, generator: torch.Generator | None = None) -> nn.Module:
    """The Q-network (B, spec.obs_size) -> (B, spec.num_actions) that `config.network` and `config.hidden` ask for.

    Raises:
        ConfigError: for "conv" on observations whose layout is not known, or is another than their size.
    """
    if config.network == "conv":
        return BarConv(_checked_layout(spec), config.hidden, spec.num_actions, generator)
    make = {"mlp": mlp, "dueling": Dueling}[config.network]
    return make(spec.obs_size, config.hidden, spec.num_actions, generator)


def describe_network(config: DQNConfig, spec: RowSpec, network: nn.Module | None = None) -> dict[str, Any]:
    """The row of a table: network, hidden, parameters, forward_flops (a row), update_flops (a minibatch).

    `network` is the one that `config` and `spec` make, where there is one already.
    """
    network = make_network(config, spec, torch.Generator()) if network is None else network
    return {
        "network": config.network,
        "hidden": "-".join(map(str, config.hidden)) or "none",
        "parameters": parameter_count(network),
        "forward_flops": network_flops(network),
        "update_flops": network_update_flops(network, config.batch_size, config.double_dqn),
    }


def _checked_layout(spec: RowSpec) -> Layout:
    layout, others = spec.layout, "network='mlp' and network='dueling' take any observation"
    if layout is None:
        raise ConfigError(
            "network='conv' must know which numbers of an observation are bars, and this environment does not say: give it "
            f"`layout = rlbench.batch.Layout(window, features, own)`, oldest bar first, own numbers last; {others}."
        )
    size = layout.window * layout.features + layout.own
    if layout.window < 1 or layout.features < 1 or layout.own < 0 or size != spec.obs_size:
        raise ConfigError(
            f"network='conv': {layout} describes {size} numbers, and an observation has {spec.obs_size}: accepted is a window "
            f"and features from 1 with window * features + own = {spec.obs_size}; {others}."
        )
    return layout
