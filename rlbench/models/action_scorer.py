"""A policy over sets of actions: a network of the state, an encoder of each action's 64 bits, a score for each pair.

With h = state(obs), the score of action a is  v . relu(W_s h + W_a bits(a) + b):  what a dense layer makes of both side
by side is the sum of what it makes of either, so that the state's part is computed once a state, not once an action. A softmax
over the scores of a state's legal actions is the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rlbench.actions import BITS
from rlbench.models.encodings import Encode, bits_of, encode_shift
from rlbench.models.layers import dense

__all__ = ["ActionScorer", "Encode", "bits_of", "encode_shift"]


class ActionScorer(nn.Module):
    """State network, value head, and scores of actions.

    Args:
        obs_size: D.
        hidden: widths of the state network; the last, H, is also that of the layer where state and action meet.
        generator: of the weights.
        encode: how ids get through the first linear layer; a variant of the slot `action_encoding`.
    """

    def __init__(
        self,
        obs_size: int,
        hidden: Sequence[int],
        generator: torch.Generator | None = None,
        encode: Encode = encode_shift,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise([obs_size, *hidden]):
            layers += [dense(fan_in, fan_out, generator), nn.ReLU()]
        width = hidden[-1]
        self.state = nn.Sequential(*layers)  # (B, D) -> (B, H)
        self.value = dense(width, 1, generator)
        self.join = dense(width, width, generator)  # the state's part of the joint layer, with its bias
        self.action = nn.Parameter(torch.empty(width, BITS).uniform_(-(BITS**-0.5), BITS**-0.5, generator=generator))
        self.score = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5, generator=generator))
        self.encode = encode

    def states(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """What is computed once a state: its part of the joint layer (B, H), and its value (B,) in float32."""
        h = self.state(obs)
        return self.join(h), self.value(h).squeeze(-1).float()

    def scores(self, joint: Tensor, ids: Tensor) -> Tensor:
        """Scores (A,) in float32 of actions ids (A,), with `joint` (A, H), or (1, H) where all are of one state."""
        return self.score_of(joint, self.encode(ids, self.action))

    def score_of(self, joint: Tensor, encoded: Tensor) -> Tensor:
        """Scores (...) in float32 from a state's part and an action's part, broadcast to (..., H).

        The last product is in float32 under autocast, too: a score of 10 has steps of 0.06 in bfloat16, and a ratio of
        probabilities would be off by as much where two ways of computing it round differently.
        """
        hidden = F.relu(joint + encoded)
        if not torch.is_autocast_enabled(hidden.device.type):
            return hidden @ self.score
        with torch.autocast(hidden.device.type, enabled=False):
            return hidden.to(self.score.dtype) @ self.score
