"""States with as many actions as each other together: one dense batch for every count that occurs.

Twenty counts are twenty batches, however few states there are to share them: of little use to small minibatches.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.evaluations.same_count import same_count_evaluate, same_count_log_probs
from rlbench.evaluations.views import counts_of
from rlbench.models.action_scorer import ActionScorer


class Grouped:
    """Groups the states of a call by their count."""

    build_s, recompiles = 0.0, 0

    def __init__(self, model: ActionScorer) -> None:
        self.model = model

    @torch.no_grad()
    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) of all legal actions and values (B,) of states obs (B, D), without a gradient."""
        log_p, values = obs.new_empty(len(legal.ids), dtype=torch.float32), obs.new_empty(len(obs), dtype=torch.float32)
        for rows, at in groups(obs, legal):
            found, value = same_count_log_probs(self.model, obs[rows], legal.ids[at.flatten()])
            log_p[at], values[rows] = found, value
        return log_p, values

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor) -> Evaluated:
        """Log-probabilities of the choices (B,), entropies and values (B,)."""
        found = groups(obs, legal)
        parts = [
            same_count_evaluate(self.model, obs[rows], legal.ids[at.flatten()], choice[rows]) for rows, at in found
        ]
        back = torch.cat([rows for rows, _ in found]).argsort()
        return Evaluated(*(torch.cat(field).index_select(0, back) for field in zip(*parts, strict=True)))


def groups(obs: Tensor, legal: ActionSets) -> list[tuple[Tensor, Tensor]]:
    """For each count K that occurs: (the states (G,) that have it, where their actions are among all (G, K))."""
    counts, *_ = counts_of(obs, legal)
    order = counts.argsort(stable=True)
    kinds, sizes = (part.tolist() for part in counts.unique(return_counts=True))  # sync: a batch a count
    found = []
    for count, rows in zip(kinds, order.split(sizes), strict=True):
        found.append((rows, legal.offsets[rows].unsqueeze(1) + torch.arange(count, device=rows.device)))
    return found
