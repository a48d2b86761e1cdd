"""Softmax, log-probabilities and entropy over sets of different sizes, packed one after another.

For scores s of the actions of state i: log p_a = s_a - m - log Σ exp(s_b - m), with m the state's largest score. Entropy is
-Σ p log p; its terms are made from log p before any action could be masked, so that a state with one action has log p 0,
entropy 0 and no gradient, exactly. Everything is float32 or wider: sums in 8 bits of precision would not be probabilities.
"""

from __future__ import annotations

import torch
from torch import Tensor


def segment_sum(values: Tensor, states: Tensor, num_states: int) -> Tensor:
    """Sums (B,) of packed values (A,)."""
    return values.new_zeros(num_states).index_add(0, states, values)


def segment_max(values: Tensor, states: Tensor, num_states: int) -> Tensor:
    """The largest of each state's values (B,), through which no gradient flows; -inf for a state without any."""
    start = values.new_full((num_states,), -torch.inf)
    return start.scatter_reduce(0, states, values.detach(), "amax")


def log_softmax(scores: Tensor, states: Tensor, num_states: int) -> Tensor:
    """Log-probabilities (A,) of each action among those of its state.

    Args:
        scores: (A,)
        states: (A,) int64, the state that each belongs to.
    """
    scores = scores.float() if scores.dtype in (torch.bfloat16, torch.float16) else scores
    shifted = scores - segment_max(scores, states, num_states)[states]
    return shifted - segment_sum(shifted.exp(), states, num_states).log()[states]


def entropy(log_p: Tensor, states: Tensor, num_states: int) -> Tensor:
    """Entropy (B,) of each state's actions, from their log-probabilities (A,)."""
    return -segment_sum(log_p.exp() * log_p, states, num_states)
