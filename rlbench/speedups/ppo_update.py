"""PPO's update: evaluate a minibatch, the clipped loss, its gradient, clipping, one step of Adam.

Eager PyTorch spends much of it on calls: a hundred and more operations on small tensors, and a walk back through as many.
`compiled` makes one call of the whole on shapes out of few, so that numbers of actions may change from state to state (claim
B19): it fuses what lies between the matrix products, and costs seconds to tens of seconds for each shape, once. `native` is one
call of a C function on the CPU, which goes through a minibatch a few hundred rows at a time (claim B20). The wider the network
and the larger the minibatch, the more of the time is in the products, which compiling leaves as they are. With several threads
compiled sums are taken in an order that differs from run to run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Decisions
from rlbench.compile import why_not
from rlbench.config import PPOConfig
from rlbench.evaluations.compiled import forget_compiled
from rlbench.evaluations.packed import Packed
from rlbench.models.action_scorer import ActionScorer
from rlbench.native.policy import why_no_policy
from rlbench.speedups.optimizer import for_loop
from rlbench.speedups.speedup import Speedup
from rlbench.updates.ppo_compiled import PPOCompiled
from rlbench.updates.ppo_eager import PPOEager


def native(*args: Any) -> Any:
    """The whole update in one native call."""
    from rlbench.updates.ppo_native import PPONative

    return PPONative(*args)


VARIANTS = {"eager": PPOEager, "compiled": PPOCompiled, "native": native}
UPDATES = 2  # a call of a measurement
RATE, FEATURES, HIDDEN, MOST_ACTIONS = 1e-3, 128, (64, 64), 20


def make_inputs(size: int, seed: int, device: str) -> tuple[ActionScorer, list[Decisions]]:
    """A scorer of actions on 128 features, and minibatches of `size` states with 1 to 20 actions each."""
    generator = torch.Generator().manual_seed(seed)
    model = ActionScorer(FEATURES, HIDDEN, generator).to(device)

    def minibatch() -> Decisions:
        counts = torch.randint(1, MOST_ACTIONS + 1, (size,), generator=generator)
        offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
        ids = torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),), generator=generator)
        choice = (torch.rand(size, generator=generator) * counts).long()
        obs, *normal = (torch.randn(shape, generator=generator) for shape in ((size, FEATURES), *[(size,)] * 4))
        log_prob = torch.where(counts > 1, 0.2 * normal[0] - counts.log(), 0.0)  # a policy near the model's own
        legal = ActionSets(ids, offsets).to(device)
        return Decisions(obs.to(device), legal, *(t.to(device) for t in (choice, log_prob, *normal[1:])))

    return model, [minibatch() for _ in range(UPDATES)]


def bind(variant: Callable[..., Any], inputs: tuple[ActionScorer, list[Decisions]]) -> Callable[[], list[Tensor]]:
    """The call updates on each minibatch, and hands out how far each parameter has moved, and what updates hand back."""
    model, batches = inputs
    model = copy.deepcopy(model)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    forget_compiled()  # so that the first call shows what compiling costs
    update = variant(model, PPOConfig(batch_size=len(batches[0].choice), hidden=HIDDEN), Packed(model), for_loop)

    def updates() -> list[Tensor]:
        numbers = [torch.stack(tuple(update(batch, RATE))) for batch in batches]
        return [*numbers, *(now.detach() - then for now, then in zip(model.parameters(), before, strict=True))]

    return updates


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """Equal but for rounding. Adam moves a parameter by about the step size, 1e-3, even where its gradient is rounding alone,
    as for a unit that is on for all actions of the one state of a minibatch. Few may be off, and not far on the whole.
    """
    for one, other in zip(expected[:UPDATES], actual[:UPDATES], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=2e-4)
    assert [t.shape for t in actual] == [t.shape for t in expected], "parameters of other shapes"
    one, other = (torch.cat([moved.reshape(-1) for moved in parts[UPDATES:]]) for parts in (expected, actual))
    off = (other - one).abs()
    share, length = float((off > 0.01 * RATE).float().mean()), float(off.norm() / one.norm())
    assert share <= 0.1, (
        f"{share:.0%} of the parameters are off by more than a hundredth of a step; accepted is a tenth"
    )
    assert length <= 0.05, f"the parameters' movement differs by {length:.0%} of its length; accepted are 5%"


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant == "eager":
        return None
    if variant == "native":
        return _native_requires(choices, config, device, env)
    if reason := why_not(device.type):
        return f"{reason}; accepted here: eager"
    if choices is not None and choices.precision == "float16_scaled":
        return "it does not scale losses, as precision='float16_scaled' asks; accepted here: eager"
    return None


def _native_requires(choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    reason = None
    if env is not None and getattr(env, "game", None) is None:
        reason = "native code updates policies over sets of actions"
    elif choices is not None and choices.precision != "float32":
        reason = f"native code computes in float32, not in {choices.precision}"
    reason = reason or why_no_policy(hidden=None if config is None else config.hidden, device=device)
    return f"{reason}; accepted here: eager, compiled" if reason else None


SPEEDUP = Speedup(
    name="ppo_update",
    question="What does one update of PPO cost?",
    summary="One call instead of hundreds of small operations. Matters most for small networks and minibatches.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(64, 512, 4096),
    size_means="samples in a minibatch",
    workloads=("ppo",),
    claims=("B19", "B20"),
)
