"""Policies over a fixed number of actions, some of which may be illegal: no sets, one row of scores a state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rlbench.batch import Evaluated


class Dense:
    """Asks an actor-critic with A scores a state. Legal are those of a mask (B, A) bool, or all.

    The score of an illegal action is the lowest finite number, not minus infinity: its probability is 0 all the same, and p log p
    of it is 0 with a gradient of 0, where 0 times infinity would be no number.
    """

    build_s, recompiles = 0.0, 0

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def log_probs(self, obs: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
        """Log-probabilities (B, A) in float32, and values (B,)."""
        scores, value = self.model(obs)
        return masked_log_softmax(scores.float(), legal), value.float()

    def evaluate(self, obs: Tensor, legal: Tensor | None, choice: Tensor) -> Evaluated:
        log_p, value = self.log_probs(obs, legal)
        return Evaluated(log_p.gather(1, choice[:, None]).squeeze(1), entropy(log_p), value)


def masked_log_softmax(scores: Tensor, legal: Tensor | None) -> Tensor:
    """Log-probabilities (B, A) of scores (B, A) among the legal actions (B, A) bool, or all."""
    if legal is not None:
        scores = scores.masked_fill(~legal, torch.finfo(scores.dtype).min)
    return scores.log_softmax(1)


def entropy(log_p: Tensor) -> Tensor:
    """Entropy (B,) of log-probabilities (B, A); actions of probability 0 add nothing, to value and gradient.

    Their log-probability is kept out of the product: the lowest finite number times a gradient above 1 would be infinite.
    """
    p = log_p.exp()
    return -(p * log_p.masked_fill(p == 0, 0.0)).sum(1)
