"""Networks. Plain functions that build `nn.Module`s from sizes and a generator, and what they cost."""

from rlbench.models.counts import forward_flops, network_flops, network_update_flops, parameter_count
from rlbench.models.mlp import mlp
from rlbench.models.networks import describe_network, make_network

__all__ = [
    "describe_network",
    "forward_flops",
    "make_network",
    "mlp",
    "network_flops",
    "network_update_flops",
    "parameter_count",
]
