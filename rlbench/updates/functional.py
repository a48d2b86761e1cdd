"""The update as one pure function of tensors: what is compiled, captured, and run inside a loop of tensors.

Parameters lie in one vector, and so do the moments of Adam: clipping and Adam are a few operations on the whole of it instead
of a few on each layer's weights, and a compiled call has few inputs to check.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value
from torch.nn import functional as F

from rlbench.batch import Transitions, Updated
from rlbench.config import DQNConfig
from rlbench.losses import next_values, td_error, td_loss, td_target
from rlbench.updates.precision import FLOAT32, Precision

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # Adam's defaults (Kingma and Ba, 2015)
ALIGNED = 16  # floats: every layer's weights begin at a multiple of 64 bytes


class Settings(NamedTuple):
    """What is fixed while training, and so becomes part of a compiled function."""

    double_dqn: bool
    huber: bool
    max_grad_norm: float  # 0 clips nothing
    precision: Precision = FLOAT32

    @classmethod
    def of(cls, config: DQNConfig, precision: Precision = FLOAT32) -> Settings:
        return cls(config.double_dqn, config.huber, config.max_grad_norm, precision)


class Moments(NamedTuple):
    """Adam's running means of gradients and of their squares."""

    first: Tensor  # (P,)
    second: Tensor  # (P,)


class FlatNetwork:
    """A network as a function of one vector of parameters, (P,) with each layer's weights padded to whole cache lines.

    It keeps the structure of the module it was made from, not its weights.
    """

    def __init__(self, module: nn.Module) -> None:
        if next(module.buffers(), None) is not None:
            raise TypeError(f"{type(module).__name__} has buffers; accepted are networks of parameters alone.")
        self.module = copy.deepcopy(module).to("meta")
        self.names = tuple(name for name, _ in module.named_parameters())
        self.shapes = tuple(parameter.shape for parameter in module.parameters())
        self.used = [shape.numel() for shape in self.shapes]
        self.sizes = [-(-count // ALIGNED) * ALIGNED for count in self.used]

    @property
    def key(self) -> Hashable:
        """Equal for networks that compute the same function of their parameters."""
        modules = tuple((name, type(part), repr(_own_settings(part))) for name, part in self.module.named_modules())
        return modules, self.names, self.shapes

    def __call__(self, parameters: Tensor, obs: Tensor) -> Tensor:
        """Q-values (B, A) in float32 at observations (B, D)."""
        return self.apply(self.views(parameters), obs)

    def apply(self, views: dict[str, Tensor], obs: Tensor) -> Tensor:
        """The same from the parameters of each layer."""
        return functional_call(self.module, views, (obs,)).float()

    def views(self, parameters: Tensor) -> dict[str, Tensor]:
        """Each layer's parameters, as views of the vector."""
        parts = zip(self.names, self.shapes, self.used, parameters.split(self.sizes), strict=True)
        return {name: part[:count].view(shape) for name, shape, count, part in parts}

    def join(self, views: dict[str, Tensor]) -> Tensor:
        """One vector (P,) of each layer's numbers; zeros between them."""
        parts = zip(self.names, self.used, self.sizes, strict=True)
        return torch.cat([F.pad(views[name].reshape(-1), (0, size - count)) for name, count, size in parts])

    @torch.no_grad()
    def adopt(self, module: nn.Module) -> Tensor:
        """Move a module's parameters into one vector, of which they become views; what changes it changes them."""
        vector = self.join({name: parameter.detach() for name, parameter in module.named_parameters()})
        views = self.views(vector)
        for name, parameter in module.named_parameters():
            parameter.data = views[name]
        return vector

    def start(self, parameters: Tensor) -> Moments:
        """The moments before the first update."""
        return Moments(torch.zeros_like(parameters), torch.zeros_like(parameters))


def _own_settings(module: nn.Module) -> list[tuple[str, object]]:
    return sorted((name, value) for name, value in vars(module).items() if not name.startswith("_"))


def td_update(
    network: FlatNetwork,
    parameters: Tensor,
    target_parameters: Tensor,
    moments: Moments,
    step: Tensor,
    batch: Transitions,
    learning_rate: Tensor,
    settings: Settings,
) -> tuple[Tensor, Moments, Updated]:
    """One step of Adam on the temporal-difference loss of a minibatch. Nothing is changed in place, nothing read on the host.

    Args:
        parameters, target_parameters: (P,) of the online and the target network.
        step: () int64, the number of this update, from 1.
        learning_rate: () float64.

    Returns:
        (parameters, moments, what a trainer reads).
    """
    parameters, target_parameters = parameters.detach(), target_parameters.detach()
    with torch.no_grad(), settings.precision.forward():
        q_online = network(parameters, batch.next_obs) if settings.double_dqn else None
        value = next_values(network(target_parameters, batch.next_obs), q_online, batch.next_mask)
        target = td_target(batch.reward, batch.discount, batch.terminated, value)  # (B,)

    def loss_of(views: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        with settings.precision.forward():
            q = network.apply(views, batch.obs)
        error = td_error(q, batch.action, target)
        return td_loss(error, settings.huber, batch.weight), error

    gradients, (loss, error) = grad_and_value(loss_of, has_aux=True)(network.views(parameters))
    gradient = clipped(network.join(gradients), settings.max_grad_norm)
    parameters, moments = adam(parameters, moments, gradient, step, learning_rate)
    return parameters, moments, Updated(loss, target, error)


def clipped(gradient: Tensor, max_norm: float) -> Tensor:
    """The gradient (P,), shortened to `max_norm` where it is longer; as `clip_grad_norm_`."""
    if not max_norm:
        return gradient
    return gradient * (max_norm / (torch.linalg.vector_norm(gradient) + 1e-6)).clamp(max=1.0)


def adam(
    parameters: Tensor, moments: Moments, gradient: Tensor, step: Tensor, learning_rate: Tensor
) -> tuple[Tensor, Moments]:
    """A step of `torch.optim.Adam`; corrections for the start are taken in float64, as there."""
    first = torch.lerp(moments.first, gradient, 1 - BETA1)
    second = moments.second * BETA2 + (1 - BETA2) * gradient * gradient
    taken = step.double()
    size = (learning_rate / (1 - BETA1**taken)).float()
    correction = (1 - BETA2**taken).sqrt().float()
    return parameters - size * (first / (second.sqrt() / correction + EPS)), Moments(first, second)


def td_updates(
    network: FlatNetwork,
    parameters: Tensor,
    target_parameters: Tensor,
    moments: Moments,
    step: Tensor,
    batch: Transitions,
    learning_rate: Tensor,
    settings: Settings,
    count: int,
) -> tuple[Tensor, Moments, Updated]:
    """`count` updates, one after another, each on its part of the rows (count * B); `step` is that of the first."""
    if count == 1:
        return td_update(network, parameters, target_parameters, moments, step, batch, learning_rate, settings)
    found: list[Updated] = []
    for k in range(count):
        part = Transitions(*(None if field is None else field.chunk(count)[k] for field in batch))
        parameters, moments, updated = td_update(
            network, parameters, target_parameters, moments, step + k, part, learning_rate, settings
        )
        found.append(updated)
    loss, *others = zip(*found, strict=True)
    return parameters, moments, Updated(torch.stack(loss), *map(torch.cat, others))
