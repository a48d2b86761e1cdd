"""All states at once, their actions packed one after another: nothing is computed for an action that is not there.

The state network runs once for B states, the rest once for A actions; each action finds its state's part by an index, and the
softmax is one over segments. Where all states have as many actions, or there is one state alone, the same numbers are looked
at as a matrix (B, K), and fewer operations do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlbench import segments
from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.models.action_scorer import ActionScorer
from rlbench.segments import Layout, layout_of


class Packed:
    """Segment softmax over packed scores."""

    build_s, recompiles = 0.0, 0

    def __init__(self, model: ActionScorer) -> None:
        self.model = model

    @torch.no_grad()
    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) of all legal actions and values (B,) of states obs (B, D), without a gradient."""
        layout = layout_of(obs, legal)
        scores, value = self.scores(obs, legal, layout)
        return segments.log_softmax(scores, layout.states, len(obs)), value

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor) -> Evaluated:
        layout = layout_of(obs, legal)
        scores, value = self.scores(obs, legal, layout)
        log_p = segments.log_softmax(scores, layout.states, len(obs))
        entropy = segments.entropy(log_p, layout.states, len(obs))
        return Evaluated(log_p.index_select(0, layout.offsets[:-1] + choice), entropy, value)

    def scores(self, obs: Tensor, legal: ActionSets, layout: Layout) -> tuple[Tensor, Tensor]:
        joint, value = self.model.states(obs)
        return self.model.scores(joint.index_select(0, layout.states), legal.ids), value
