"""Every state given as many actions as the one with most: a matrix, of which a mask says what counts.

Simple, and all dense; but what is added to fill the matrix is encoded and scored like the rest. One state of 1,400 actions
among a few hundred small ones makes nearly all of the work filling.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.evaluations.dense import entropy, masked_log_softmax
from rlbench.evaluations.views import counts_of
from rlbench.models.action_scorer import ActionScorer


class Padded:
    """Fills up with id 0 and scores everything."""

    build_s, recompiles = 0.0, 0

    def __init__(self, model: ActionScorer) -> None:
        self.model = model

    @torch.no_grad()
    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) of all legal actions and values (B,) of states obs (B, D), without a gradient."""
        valid = filled(obs, legal)
        log_p, value = self.padded_log_probs(obs, legal, valid)
        return log_p[valid], value

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor) -> Evaluated:
        """Log-probabilities of the choices (B,), entropies and values (B,)."""
        log_p, value = self.padded_log_probs(obs, legal, filled(obs, legal))
        return Evaluated(log_p.gather(1, choice.unsqueeze(1)).squeeze(1), entropy(log_p), value)

    def padded_log_probs(self, obs: Tensor, legal: ActionSets, valid: Tensor) -> tuple[Tensor, Tensor]:
        """(log-probabilities (B, K), values (B,)); `valid` (B, K) has the places of the real actions."""
        ids = legal.ids.new_zeros(valid.shape).masked_scatter_(valid, legal.ids)
        joint, value = self.model.states(obs)
        encoded = self.model.encode(ids.flatten(), self.model.action).unflatten(0, valid.shape)  # (B, K, H)
        return masked_log_softmax(self.model.score_of(joint.unsqueeze(1), encoded), valid), value


def filled(obs: Tensor, legal: ActionSets) -> Tensor:
    """(B, K) bool, with K the largest count: which places of each state's row are those of its actions."""
    counts, _, high = counts_of(obs, legal)
    width = int(counts.max()) if high is None else high  # sync: the width of a matrix
    return torch.arange(width, device=counts.device) < counts.unsqueeze(1)
