"""Evaluate: how a policy is asked about a batch of states that have different numbers of legal actions.

The sources ask about one state at a time; their "after" takes all at once where their counts agree, which is rare (claims B2,
B12), or those with equal counts together (claim B3). Padding makes a matrix of any batch, and work of what is filled up;
`padded_softmax` fills up scores alone. Packed, nothing is filled up, and with a backward pass by hand little is called: the
larger the batch and the more its counts differ, the more that is worth. A few states are few calls in any way. Compiled, in
native code and as a Triton kernel the same is done in fewer calls still.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench import compile as compiling
from rlbench.actions import ActionSets
from rlbench.evaluations import triton
from rlbench.evaluations.compiled import PackedCompiled, forget_compiled
from rlbench.evaluations.grouped import Grouped
from rlbench.evaluations.loop import Loop
from rlbench.evaluations.native import PackedNative
from rlbench.evaluations.packed import Packed
from rlbench.evaluations.padded import Padded
from rlbench.evaluations.padded_softmax import PaddedSoftmax
from rlbench.evaluations.same_count import SameCountOrLoop
from rlbench.models.action_scorer import ActionScorer
from rlbench.models.encodings import encode_fused
from rlbench.native.policy import why_no_policy
from rlbench.speedups.speedup import Speedup

VARIANTS = {
    "loop": Loop,
    "same_count_or_loop": SameCountOrLoop,
    "grouped": Grouped,
    "padded": Padded,
    "padded_softmax": PaddedSoftmax,
    "packed": Packed,
    "packed_compiled": PackedCompiled,
    "packed_native": PackedNative,
    "packed_triton": triton.PackedTriton,
}
FEATURES, HIDDEN, MOST_ACTIONS = 128, (128, 128), 20


def make_inputs(size: int, seed: int, device: str, longest: int | None = None) -> tuple:
    """A scorer of actions, and `size` states of 1 to 20 actions with a choice and three weights each.

    Args:
        longest: how many actions one state in the middle has instead.
    """
    generator = torch.Generator().manual_seed(seed)
    model = ActionScorer(FEATURES, HIDDEN, generator, encode_fused)
    counts = torch.randint(1, MOST_ACTIONS + 1, (size,), generator=generator)
    if longest is not None:
        counts[size // 2] = longest
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    ids = torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),), generator=generator)
    obs = torch.randn(size, FEATURES, generator=generator)
    choice = (torch.rand(size, generator=generator) * counts).long()
    weights = torch.randn(3, size, generator=generator) / size
    return model.to(device), obs.to(device), ActionSets(ids, offsets).to(device), choice.to(device), weights.to(device)


def bind(variant: Callable[..., Any], inputs: tuple) -> Callable[[], list[Tensor]]:
    """The call evaluates and goes back; it hands out log-probabilities, entropies, values, and the parameters' gradients."""
    model, obs, legal, choice, weights = inputs
    model = copy.deepcopy(model)
    forget_compiled()  # so that the first call shows what compiling costs
    evaluator, parameters = variant(model), list(model.parameters())

    def there_and_back() -> list[Tensor]:
        now = evaluator.evaluate(obs, legal, choice)
        gradients = torch.autograd.grad((torch.stack(now) * weights).sum(), parameters)
        return [*(part.detach() for part in now), *gradients]

    return there_and_back


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """Equal but for rounding: outcomes to 1e-5, gradients as a whole to 1e-4 of their length. Where a unit is within rounding of
    its kink, it is on in one variant and off in another, and a row of a gradient differs.
    """
    for one, other in zip(expected[:3], actual[:3], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)
    assert [t.shape for t in actual] == [t.shape for t in expected], "gradients of other shapes"
    one, other = (torch.cat([gradient.reshape(-1) for gradient in part[3:]]) for part in (expected, actual))
    assert other.isfinite().all(), "not all gradients are finite"
    share = float((other - one).norm() / one.norm())
    assert share <= 1e-4, f"the gradients differ by {share:.1e} of their length; accepted are 1e-4"


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if env is not None and env.game is None:
        return "the environment has no sets of legal actions; leave it out"
    reason = None
    if variant == "packed_compiled":
        reason = compiling.why_not(device.type)
    elif variant == "packed_native":
        reason = _why_not_native(choices, config, device)
    elif variant == "packed_triton":
        reason = triton.why_not(device)
    return f"{reason}; accepted here: packed" if reason else None


def _why_not_native(choices: Any, config: Any, device: torch.device) -> str | None:
    precision = getattr(choices, "precision", "float32")
    if precision != "float32":
        return f"native code computes in float32, not in {precision}"
    return why_no_policy(hidden=None if config is None else config.hidden, device=device)


SPEEDUP = Speedup(
    name="evaluate",
    question="How is a policy asked about states with different numbers of actions?",
    summary="All states at once, packed, instead of one by one. Matters where batches are large and counts differ.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(1, 16, 256, 4096),
    size_means=f"states of 1 to {MOST_ACTIONS} actions, forward and backward",
    workloads=("ppo",),
    claims=("B2", "B3", "B12", "B19", "B20"),
)
