"""One state at a time, as code does that was written for one state: every network is called once a state."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.evaluations.views import counts_of
from rlbench.models.action_scorer import ActionScorer


class Loop:
    """The plainest evaluator, and what all others are compared with."""

    build_s, recompiles = 0.0, 0

    def __init__(self, model: ActionScorer) -> None:
        self.model = model

    @torch.no_grad()
    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) of all legal actions and values (B,) of states obs (B, D), without a gradient."""
        parts = [self.one(row, ids) for row, ids in each_state(obs, legal)]
        return torch.cat([log_p for log_p, _ in parts]), torch.cat([value for _, value in parts])

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor) -> Evaluated:
        """Log-probabilities of the choices (B,), entropies and values, one state after another."""
        log_prob, entropy, values = [], [], []
        for i, (row, ids) in enumerate(each_state(obs, legal)):
            log_p, value = self.one(row, ids)
            log_prob.append(log_p[choice[i]])
            entropy.append(-(log_p.exp() * log_p).sum())
            values.append(value.squeeze(0))
        return Evaluated(torch.stack(log_prob), torch.stack(entropy), torch.stack(values))

    def one(self, row: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """(log-probabilities of ids (K,), value (1,)) of one state (1, D)."""
        joint, value = self.model.states(row)
        return self.model.scores(joint, ids).log_softmax(0), value


def each_state(obs: Tensor, legal: ActionSets) -> list[tuple[Tensor, Tensor]]:
    """(features (1, D), ids (K,)) of each state."""
    counts_of(obs, legal)
    bounds = legal.offsets.tolist()  # sync: the loop is the host's
    return [(obs[i : i + 1], legal.ids[a:b]) for i, (a, b) in enumerate(pairwise(bounds))]
