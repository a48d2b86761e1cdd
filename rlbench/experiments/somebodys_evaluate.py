"""An `evaluate()` as many write it, sample by sample, and the lines that take its place (`rlbench.evaluations` has them)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rlbench import segments
from rlbench.actions import BITS, pack, unpack
from rlbench.measure import measure
from rlbench.models.encodings import bits_of
from rlbench.models.layers import dense
from rlbench.results import Row
from rlbench.speedups import evaluate as slot
from rlbench.speedups.speedup import Speedup, no_needs


class Network(nn.Module):
    """Pairs of a state's features and an action's bits through dense layers: (A, D) and ids (A,) -> scores (A,)."""

    def __init__(self, features: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        first, last = dense(features + BITS, width, generator), dense(width, 1, generator)
        self.layers = nn.Sequential(first, nn.ReLU(), last)

    def forward(self, obs: Tensor, ids: Tensor) -> Tensor:
        return self.layers(torch.cat((obs, bits_of(ids)), 1)).squeeze(1)


def sample_by_sample(
    network: Network, obs: Tensor, ids_of_each_state: Sequence[list[int]], choice: Tensor
) -> tuple[Tensor, Tensor]:
    """(log-probabilities of the choices (B,), entropies (B,)), one state after another."""
    log_probs, entropies = [], []
    for features, ids, chosen in zip(obs, ids_of_each_state, choice, strict=True):
        scores = network(features.expand(len(ids), -1), torch.tensor(ids))
        policy = torch.distributions.Categorical(logits=scores)
        log_probs.append(policy.log_prob(chosen))
        entropies.append(policy.entropy())
    return torch.stack(log_probs), torch.stack(entropies)


def at_once(
    network: Network, obs: Tensor, ids_of_each_state: Sequence[list[int]], choice: Tensor
) -> tuple[Tensor, Tensor]:
    """The same, of all states in one call of the network."""
    legal = pack(ids_of_each_state)  # ids (A,) of all states one after another, and where each state's begin
    states = legal.states()  # (A,) the state that each action belongs to
    scores = network(obs[states], legal.ids)  # (A,) all pairs in one call
    log_p = segments.log_softmax(scores, states, len(obs))  # (A,) among the actions of the same state
    log_prob = log_p[legal.offsets[:-1] + choice]  # (B,)
    entropy = segments.entropy(log_p, states, len(obs))  # (B,)
    return log_prob, entropy


def _inputs(size: int, seed: int, device: str) -> tuple:
    """A network, and states of 1 to 20 actions whose ids, of 62 bits, are lists of Python ints, on the CPU."""
    _, obs, legal, choice, _ = slot.make_inputs(size, seed, "cpu")
    network = Network(slot.FEATURES, slot.HIDDEN[0], torch.Generator().manual_seed(seed))
    short = legal._replace(ids=legal.ids & (2**62 - 1))  # `torch.tensor` takes no larger ones than 2^63 - 1
    return network, obs, unpack(short), choice


def _bind(variant: Callable[..., tuple[Tensor, Tensor]], inputs: tuple) -> Callable[[], list[Tensor]]:
    """The call evaluates and goes back; it hands out log-probabilities, entropies and the gradients."""
    network, *rest = inputs
    parameters = list(network.parameters())

    def there_and_back() -> list[Tensor]:
        now = variant(network, *rest)
        gradients = torch.autograd.grad(sum(part.mean() for part in now), parameters)
        return [*(part.detach() for part in now), *gradients]

    return there_and_back


def _check(expected: list[Tensor], actual: list[Tensor]) -> None:
    for one, other in zip(expected, actual, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)


RECIPE = Speedup(
    name="recipe",
    question="What do ten lines bring to an evaluate() that goes through samples one by one?",
    summary="All pairs of a state and an action in one call of the network.",
    variants={"sample by sample": sample_by_sample, "at once": at_once},
    make_inputs=_inputs,
    bind=_bind,
    check=_check,
    requires=no_needs,
    sameness="close",
    sizes=(64, 256),
    size_means="states of 1 to 20 actions",
    workloads=("ppo",),
)


def recipe(sizes: Sequence[int], **arguments: Any) -> list[Row]:
    """`measure` of the lines against what they replace. `arguments` are those of `measure`."""
    return measure([RECIPE.name], sizes=sizes, speedups={RECIPE.name: RECIPE}, **{**arguments, "device": "cpu"})
