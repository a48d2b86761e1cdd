"""Only actions that are there are encoded and scored; their scores are put into a matrix for the softmax.

What is filled up costs one number an action instead of a row of the network's width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.evaluations.dense import entropy
from rlbench.evaluations.padded import filled
from rlbench.models.action_scorer import ActionScorer


class PaddedSoftmax:
    """Packed up to the scores, a matrix from there on."""

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
        """(log-probabilities (B, K), values (B,)); `valid` (B, K) has the places of the real actions.

        Illegal places get the lowest finite number, as in `dense.masked_log_softmax`.
        """
        joint, value = self.model.states(obs)
        scores = self.model.scores(joint.index_select(0, legal.states()), legal.ids)
        lowest = scores.new_full(valid.shape, torch.finfo(scores.dtype).min)
        return lowest.masked_scatter(valid, scores).log_softmax(1), value
