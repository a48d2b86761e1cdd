"""Only actions that are there are encoded and scored; their scores are put into a matrix for the softmax.

What is filled up costs one number an action instead of a row of the network's width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.evaluations.padded import Padded


class PaddedSoftmax(Padded):
    """Packed up to the scores, a matrix from there on."""

    def padded_log_probs(self, obs: Tensor, legal: ActionSets, valid: Tensor) -> tuple[Tensor, Tensor]:
        """(log-probabilities (B, K), values (B,)); `valid` (B, K) has the places of the real actions.

        Illegal places get the lowest finite number, as in `dense.masked_log_softmax`.
        """
        joint, value = self.model.states(obs)
        scores = self.model.scores(joint.index_select(0, legal.states()), legal.ids)
        lowest = scores.new_full(valid.shape, torch.finfo(scores.dtype).min)
        return lowest.masked_scatter(valid, scores).log_softmax(1), value
