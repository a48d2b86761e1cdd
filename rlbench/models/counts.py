"""What a network costs: trained scalars, and floating-point operations of its matrix products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from torch import nn

from rlbench.models.layers import PointwiseConv


def parameter_count(network: nn.Module) -> int:
    """Number of trained scalars."""
    return sum(p.numel() for p in network.parameters())


def forward_flops(widths: Sequence[int]) -> int:
    """Floating-point operations of one row's forward pass: a multiply and an add for each weight (biases, ReLU left out)."""
    return sum(2 * a * b for a, b in pairwise(widths))


def network_flops(network: nn.Module) -> int:
    """Operations of one row's forward pass through any network of `make_network`: a multiply and an add for each use of a
    weight; what is added or compared by element is left out.

    Raises:
        TypeError: for a network with layers that are not counted here, naming them.
    """
    return sum(_flops(layer) for layer in _layers(network))


def network_update_flops(network: nn.Module, batch_size: int, double_dqn: bool = True) -> int:
    """Operations of the matrix products of one DQN update.

    A forward pass each of the online and the target network, and for Double DQN one more at the next states; backward, one
    product for the weights of each layer and one for the inputs of each but the first, which sees the observation.
    """
    forward, first = network_flops(network), _flops(next(_layers(network)))
    return batch_size * ((3 if double_dqn else 2) * forward + 2 * forward - first)


def _layers(network: nn.Module) -> Iterator[nn.Linear]:
    """The layers with weights, in the order in which they were added, which is that of the forward pass."""
    for name, module in network.named_modules():
        if isinstance(module, nn.Linear):
            yield module
        elif next(module.parameters(recurse=False), None) is not None:
            raise TypeError(f"{name or 'the network'} is a {type(module).__name__}: only nn.Linear is counted here.")


def _flops(layer: nn.Linear) -> int:
    uses = layer.window if isinstance(layer, PointwiseConv) else 1
    return 2 * uses * layer.in_features * layer.out_features
