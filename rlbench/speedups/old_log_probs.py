"""Old log-probabilities: those of a rollout's choices before any update of a round, which probability ratios are taken to.

The sources compute them after collecting: one state at a time, each number fetched with `.item()`; then, as their "after",
grouped by the number of actions (claim B4). Packed, all states go through at once. But the policy that acted computed these very
numbers when it chose: storing them then costs nothing. That is the same as long as the policy that acted is the one that is
updated, and both are asked in the same precision; for recorded games of another policy the setting `old_log_probs` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench.batch import Decisions
from rlbench.evaluations.grouped import Grouped
from rlbench.evaluations.packed import Packed
from rlbench.minibatches import like_parts, slices
from rlbench.models.action_scorer import ActionScorer
from rlbench.speedups.minibatch import FEATURES, random_decisions
from rlbench.speedups.speedup import Speedup

ROWS = 8192  # most states that are asked about at once: what lies between takes kilobytes a state


@torch.no_grad()
def recompute_loop(model: ActionScorer, decisions: Decisions) -> Tensor:
    """Log-probabilities (M,), one state at a time: brought to the model, and the number fetched."""
    device = model.score.device
    bounds, chosen = decisions.legal.offsets.tolist(), decisions.choice.tolist()  # sync: the loop is Python's
    found = []
    for i, choice in enumerate(chosen):
        joint, _ = model.states(decisions.obs[i : i + 1].to(device))
        log_p = model.scores(joint, decisions.legal.ids[bounds[i] : bounds[i + 1]].to(device)).log_softmax(0)
        found.append(log_p[choice].item())  # sync: as the sources do, one number after another
    return torch.tensor(found, device=decisions.obs.device)


def recompute_grouped(model: ActionScorer, decisions: Decisions) -> Tensor:
    """Log-probabilities (M,), the states with as many actions as each other together."""
    return _asked(Grouped(model), decisions)


def recompute_packed(model: ActionScorer, decisions: Decisions) -> Tensor:
    """Log-probabilities (M,), all states at once."""
    return _asked(Packed(model), decisions)


def stored(model: ActionScorer, decisions: Decisions) -> Tensor:
    """Log-probabilities (M,) that were kept when the choices were made."""
    return decisions.log_prob


def _asked(evaluator: Grouped | Packed, decisions: Decisions) -> Tensor:
    """Some thousand states at a time, brought to the model where they lie elsewhere; the answer lies where they do."""
    total, home, device = len(decisions.obs), decisions.obs.device, evaluator.model.score.device
    found = []
    for part in [decisions] if total <= ROWS else slices(decisions, like_parts(total, ROWS)):
        legal = part.legal.to(device)
        log_p, _ = evaluator.log_probs(part.obs.to(device), legal)
        found.append(log_p[legal.offsets[:-1] + part.choice.to(device)].to(home))
    return found[0] if len(found) == 1 else torch.cat(found)


VARIANTS = {
    "recompute_loop": recompute_loop,
    "recompute_grouped": recompute_grouped,
    "recompute_packed": recompute_packed,
    "stored": stored,
}


def make_inputs(size: int, seed: int, device: str) -> tuple[ActionScorer, Decisions]:
    """A scorer of width 64 and decisions among 1 to 20 actions, with the log-probabilities that acting would have stored."""
    model = ActionScorer(FEATURES, (64, 64), torch.Generator().manual_seed(seed))
    decisions = random_decisions(size, seed, "cpu")
    kept = recompute_loop(model, decisions)
    decisions = decisions._replace(log_prob=kept, legal=decisions.legal.to(device))
    return model.to(device), Decisions(*(field.to(device) for field in decisions))


def bind(variant: Callable[[ActionScorer, Decisions], Tensor], inputs: tuple) -> Callable[[], Tensor]:
    model, decisions = inputs
    return lambda: variant(model, decisions)


def check(expected: Tensor, actual: Tensor) -> None:
    """Equal but for rounding: probability ratios are 1 within 1e-5."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    has_sets = env is None or env.game is not None
    if variant != "stored":
        return None if has_sets else "the environment has no sets of legal actions; leave it out"
    if getattr(config, "old_log_probs", "behaviour") != "recomputed":
        return None
    if has_sets:
        return (
            "old_log_probs='recomputed' in the config asks for others than those that were stored; "
            "accepted here: recompute_loop, recompute_grouped, recompute_packed"
        )
    return (
        "old_log_probs='recomputed' in the config needs sets of legal actions, and the environment has none; accepted "
        "here: old_log_probs='behaviour' in the config"
    )


SPEEDUP = Speedup(
    name="old_log_probs",
    question="What does it cost to know the log-probabilities before an update?",
    summary="Nothing, where they were stored when the choices were made. Recomputed, all states at once.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(64, 1024),
    size_means="decisions among 1 to 20 actions",
    workloads=("ppo",),
    fallback="recompute_packed",
    claims=("B4",),
)
