"""All states at once where their counts of actions agree, and one at a time where they do not."""

from __future__ import annotations

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.evaluations.loop import Loop
from rlbench.evaluations.views import counts_of
from rlbench.models.action_scorer import ActionScorer


class SameCountOrLoop:
    """A batch where that is simple. States drawn at random rarely all have the same count."""

    build_s, recompiles = 0.0, 0

    def __init__(self, model: ActionScorer) -> None:
        self.model, self.loop = model, Loop(model)

    @torch.no_grad()
    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) of all legal actions and values (B,) of states obs (B, D), without a gradient."""
        if not agree(obs, legal):
            return self.loop.log_probs(obs, legal)
        log_p, value = same_count_log_probs(self.model, obs, legal.ids)
        return log_p.flatten(), value

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor) -> Evaluated:
        """Log-probabilities of the choices (B,), entropies and values (B,)."""
        if not agree(obs, legal):
            return self.loop.evaluate(obs, legal, choice)
        return same_count_evaluate(self.model, obs, legal.ids, choice)


def agree(obs: Tensor, legal: ActionSets) -> bool:
    """Whether all states have as many actions."""
    counts, low, high = counts_of(obs, legal)
    return bool((counts == counts[0]).all()) if low is None else low == high  # sync: which way to go


def same_count_log_probs(model: ActionScorer, obs: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """(log-probabilities (B, K), values (B,)) of states obs (B, D) with K actions each, ids (B * K,)."""
    joint, value = model.states(obs)
    encoded = model.encode(ids, model.action).unflatten(0, (len(obs), -1))  # (B, K, H)
    return model.score_of(joint.unsqueeze(1), encoded).log_softmax(1), value


def same_count_evaluate(model: ActionScorer, obs: Tensor, ids: Tensor, choice: Tensor) -> Evaluated:
    log_p, value = same_count_log_probs(model, obs, ids)
    return Evaluated(log_p.gather(1, choice.unsqueeze(1)).squeeze(1), -(log_p.exp() * log_p).sum(1), value)
