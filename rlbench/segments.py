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
    """Entropy (B,) of each state's actions, from their log-probabilities (A,). Probability 0 adds nothing, and no gradient."""
    p = log_p.exp()
    return -segment_sum(p * log_p.masked_fill(p == 0, 0.0), states, num_states)


def pick(log_p: Tensor, offsets: Tensor, uniform: Tensor) -> Tensor:
    """An action a state, drawn by inverting the cumulative probability.

    Sums run over all states and are of 53 bits: with a million actions they are right to ten digits. An action of probability
    0 is never picked, whatever rounding does.

    Args:
        log_p: (A,) log-probabilities.
        offsets: (B + 1,) int64, as in `ActionSets`; no set is empty.
        uniform: (B,) numbers from 0 up to, but not including, 1.

    Returns:
        (B,) int64: the place in the state's list of the first action whose cumulative probability exceeds `uniform`.
    """
    sums = torch.cat((log_p.new_zeros(1, dtype=torch.float64), log_p.detach().double().exp().cumsum(0)))  # (A + 1,)
    first, last = sums.index_select(0, offsets[:-1]), sums.index_select(0, offsets[1:])
    target = torch.lerp(first, last, uniform.double()).minimum(torch.nextafter(last, first))
    place = torch.searchsorted(sums[1:], target, right=True) - offsets[:-1]
    return place.clamp(min=0).minimum(offsets.diff() - 1)  # where log_p is no number, some place in the list


def argmax(values: Tensor, offsets: Tensor) -> Tensor:
    """The place (B,) int64 in each state's list of its largest value, of values (A,); of equals the first."""
    num_states, num_actions = len(offsets) - 1, len(values)
    index = torch.arange(num_actions, device=values.device)
    counts = offsets.diff()
    rows = torch.arange(num_states, device=values.device)
    states = torch.repeat_interleave(rows, counts, output_size=num_actions)
    largest = segment_max(values, states, num_states).index_select(0, states)
    found = index.masked_fill(values.detach() != largest, num_actions)
    place = counts.new_full((num_states,), num_actions).scatter_reduce(0, states, found, "amin") - offsets[:-1]
    return place.minimum(counts - 1)  # where a value is no number, some place in the list
