"""PPO's pure update compiled: one call a minibatch, whatever the numbers of legal actions in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rlbench.batch import Decisions, PPOUpdated
from rlbench.config import PPOConfig
from rlbench.evaluations.compiled import Functions, layout, settings_of_process
from rlbench.phases import phase
from rlbench.uncopied import Uncopied
from rlbench.updates.functional import FlatNetwork, Moments, adam, clipped
from rlbench.updates.ppo_functional import PPOSettings, on_bucket, policy_of, ppo_gradient, ppo_update
from rlbench.updates.ppo_parts import joined, parts_of
from rlbench.updates.precision import FLOAT32, Precision
from rlbench.updates.stepper import MakeOptimizer


class PPOCompiled(Uncopied):
    """One compiled call a minibatch, or one a part of it, and one to step, where it is computed in parts to save memory.

    The model keeps its modules, whose parameters become views of one vector; weights that are loaded in place, as
    `load_state_dict` does, take effect at once. There is a compiled function for every bucketed shape.

    Args:
        model: an `ActionScorer`, or an actor-critic over a fixed number of actions.
        evaluator: acts elsewhere; here the pure function evaluates by itself, packed or dense as the model is.
    """

    skipped = 0

    def __init__(
        self,
        model: nn.Module,
        config: PPOConfig,
        evaluator: Any,
        make_optimizer: MakeOptimizer,
        precision: Precision = FLOAT32,
    ) -> None:
        # The function has its own evaluation and its own Adam; `requires` of those slots says so.
        del evaluator, make_optimizer
        if precision.scaled:
            raise TypeError(f"{type(self).__name__} does not scale losses; {precision.name} needs PPOEager.")
        policy, self.network = policy_of(model)
        self.config, self.settings = config, PPOSettings.of(config, precision)
        self.parameters = self.network.adopt(policy)
        self.moments = self.network.start(self.parameters)
        device = self.parameters.device
        self.steps = torch.zeros((), dtype=torch.int64, device=device)
        self.learning_rate = Held(torch.float64, device)
        self.rows = Held(torch.float32, device)
        self.taken = 0
        self.functions, self.key = Functions(), (self.network.key, self.settings)

    @torch.no_grad()
    def __call__(self, batch: Decisions, learning_rate: float) -> PPOUpdated:
        """Update the policy on a minibatch."""
        with phase("update"):
            self.taken += 1
            rate = self.learning_rate.of(learning_rate)
            parts = parts_of(batch, self.config)
            if len(parts) == 1:
                padded = on_bucket(batch)
                function = self._function("update", padded, lambda: in_place(self.network, self.settings))
                rows = self.rows.of(len(batch.choice))
                return function(self.parameters, self.moments, self.steps, padded, rows, rate)
            gradient, found = torch.zeros_like(self.parameters), []
            for part, share in parts:
                found.append(self._add_gradient(gradient, part, share))
            step = self._function("step", None, lambda: step_in_place(self.settings))
            step(self.parameters, self.moments, self.steps, gradient, rate)
            return joined(found, [share for _, share in parts])

    def _add_gradient(self, total: Tensor, part: Decisions, share: float) -> PPOUpdated:
        """Add to `total` (P,) a part's share of the gradient; its advantages are normalised over the whole already."""
        settings, padded = self.settings._replace(norm_adv=False), on_bucket(part)
        function = self._function("gradient", padded, lambda: gradient_of(self.network, settings))
        gradient, updated = function(self.parameters, padded, self.rows.of(len(part.choice)))
        total.add_(gradient, alpha=share)
        return updated

    def _function(
        self, name: str, batch: Decisions | None, make: Callable[[], Callable[..., Any]]
    ) -> Callable[..., Any]:
        process = settings_of_process(self.parameters.device)
        return self.functions.get((name, self.key, layout(batch), process), make)

    @property
    def build_s(self) -> float:
        """Seconds of compilation that this object's calls have cost so far."""
        return self.functions.build_s

    @property
    def recompiles(self) -> int:
        """Compilations beyond the first of each bucketed shape."""
        return self.functions.recompiles


class Held:
    """A number as a tensor () on a device: another value compiles nothing anew, the same one costs nothing."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.tensor, self.value = torch.zeros((), dtype=dtype, device=device), 0.0

    def of(self, value: float) -> Tensor:
        if value != self.value:
            self.tensor.fill_(value)
            self.value = value
        return self.tensor


def in_place(network: FlatNetwork, settings: PPOSettings) -> Callable[..., PPOUpdated]:
    """An update whose results are written over the tensors that they were read from; `step` counts the updates so far."""

    def update(
        parameters: Tensor, moments: Moments, step: Tensor, batch: Decisions, rows: Tensor, learning_rate: Tensor
    ) -> PPOUpdated:
        after, stepped, updated = ppo_update(
            network, parameters, moments, step + 1, batch, rows, learning_rate, settings
        )
        write(parameters, moments, step, after, stepped)
        return updated

    return update


def gradient_of(network: FlatNetwork, settings: PPOSettings) -> Callable[..., tuple[Tensor, PPOUpdated]]:
    """The gradient of a part of a minibatch."""

    def gradient(parameters: Tensor, batch: Decisions, rows: Tensor) -> tuple[Tensor, PPOUpdated]:
        return ppo_gradient(network, parameters, batch, rows, settings)

    return gradient


def step_in_place(settings: PPOSettings) -> Callable[..., None]:
    """Clipping and Adam with a gradient (P,) that is there already."""

    def take(parameters: Tensor, moments: Moments, step: Tensor, gradient: Tensor, learning_rate: Tensor) -> None:
        gradient = clipped(gradient, settings.max_grad_norm)
        after, stepped = adam(parameters, moments, gradient, step + 1, learning_rate)
        write(parameters, moments, step, after, stepped)

    return take


def write(parameters: Tensor, moments: Moments, step: Tensor, after: Tensor, stepped: Moments) -> None:
    parameters.copy_(after)
    moments.first.copy_(stepped.first)
    moments.second.copy_(stepped.second)
    step.add_(1)
