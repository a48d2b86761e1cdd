"""Sets of actions seen two ways: packed, where counts differ; as a matrix, where they agree.

Both views have one interface, so that an evaluator is written once. An array with an entry an action is (A,) in one and (B, K)
in the other; `spread` gives each of them its state's entry of (B,), `sums` adds them up to (B,).
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlbench.actions import ActionError, ActionSets
from rlbench.models.encodings import MIN_IDS, Encode, add_table_rows, encode_fused

FAR_BELOW = -1e30


class Spans:
    """B states, their A actions one after another. Reductions go along spans: in order, the same numbers in every run."""

    def __init__(self, offsets: Tensor, counts: Tensor, num_actions: int, largest: int | None) -> None:
        self.offsets, self.counts, self.largest = offsets, counts, largest  # (B + 1,), (B,), K
        index = torch.arange(len(counts), device=counts.device)
        self.states = torch.repeat_interleave(index, counts, output_size=num_actions)  # (A,)

    def shape(self, values: Tensor) -> Tensor:
        return values

    def spread(self, values: Tensor) -> Tensor:
        return values.index_select(0, self.states)

    def sums(self, values: Tensor) -> Tensor:
        return torch.segment_reduce(values, "sum", offsets=self.offsets, unsafe=True)

    def log_softmax(self, scores: Tensor) -> Tensor:
        largest = torch.segment_reduce(scores, "max", offsets=self.offsets, unsafe=True)
        shifted = scores - self.spread(largest)
        return shifted.sub_(self.spread(self.sums(shifted.exp()).log_()))

    def at(self, choice: Tensor) -> Tensor:
        """Where the choices (B,) are among all A actions."""
        return self.offsets[:-1] + choice

    def encode(self, encode: Encode, ids: Tensor, weight: Tensor, joint: Tensor) -> Tensor:
        """A new (A, H): each action's part plus its state's row of joint (B, H). No gradient flows."""
        if encode is encode_fused and len(ids) >= MIN_IDS:
            return add_table_rows(ids, weight, joint, self.states)
        return encode(ids, weight).add_(joint.index_select(0, self.states))

    def rows_of(self, joint: Tensor) -> Tensor:
        """Each action's row of joint (B, H)."""
        return joint.index_select(0, self.states)

    def matrix(self, values: Tensor) -> Tensor:
        """(A,) -> (B, K): all else far below any score, and finite, so that its p log p is 0 and has no gradient."""
        if self.largest is None:
            raise ValueError("counts are known on the CPU alone")
        places = torch.arange(self.largest, device=values.device) < self.counts.unsqueeze(1)
        return values.new_full(places.shape, FAR_BELOW).masked_scatter(places, values)

    def weighted_rows(self, rows: Tensor, weights: Tensor) -> Tensor:
        """Sums (B, H) over each state's actions of weights (A,) times rows (A, H), as bags: five times as fast on the CPU
        as `segment_reduce` is with rows."""
        index = torch.arange(len(rows), device=rows.device)
        return torch.embedding_bag(rows, index, self.offsets, False, 0, False, weights, True)[0]


class Rows:
    """B states with K actions each."""

    def __init__(self, num_states: int, count: int) -> None:
        self.num_states, self.count = num_states, count

    def shape(self, values: Tensor) -> Tensor:
        return values.view(self.num_states, self.count)

    def spread(self, values: Tensor) -> Tensor:
        return values.unsqueeze(1)

    def sums(self, values: Tensor) -> Tensor:
        return values.sum(1)

    def log_softmax(self, scores: Tensor) -> Tensor:
        return scores.log_softmax(1)

    def at(self, choice: Tensor) -> Tensor:
        if self.num_states == 1:
            return choice
        return torch.arange(0, self.num_states * self.count, self.count, device=choice.device).add_(choice)

    def encode(self, encode: Encode, ids: Tensor, weight: Tensor, joint: Tensor) -> Tensor:
        encoded = encode(ids, weight)
        if self.num_states == 1:
            return encoded.add_(joint)
        encoded.view(self.num_states, self.count, -1).add_(joint.unsqueeze(1))
        return encoded

    def rows_of(self, joint: Tensor) -> Tensor:
        return joint if self.num_states == 1 else joint.repeat_interleave(self.count, 0)

    def matrix(self, values: Tensor) -> Tensor:
        return values.view(self.num_states, self.count)

    def weighted_rows(self, rows: Tensor, weights: Tensor) -> Tensor:
        if self.num_states == 1:
            return weights.unsqueeze(0) @ rows
        return torch.bmm(self.shape(weights).unsqueeze(1), rows.view(self.num_states, self.count, -1)).squeeze(1)


View = Spans | Rows


def view_of(obs: Tensor, legal: ActionSets) -> View:
    """How the sets of states obs (B, D) are best looked at; it can be kept for sets that are asked about several times.

    On the CPU it costs next to nothing to look at all counts. Elsewhere the host would have to wait for the device: there only
    a single state is taken as a matrix.

    Raises:
        ActionError: as `counts_of`.
    """
    num_states, num_actions = len(obs), len(legal.ids)
    if num_states == 1 and len(legal.offsets) == 2 and num_actions:
        return Rows(1, num_actions)
    counts, low, high = counts_of(obs, legal)
    if low is not None and low == high:
        return Rows(num_states, num_actions // num_states)
    return Spans(legal.offsets, counts, num_actions, high)


def counts_of(obs: Tensor, legal: ActionSets) -> tuple[Tensor, int | None, int | None]:
    """(how many actions each state has (B,), the smallest of those, the largest); the last two None where not on the CPU.

    Raises:
        ActionError: where there are not as many sets as states; on the CPU also for a state without a legal action. On other
            devices that is for `actions.check_sets`, where sets are made.
    """
    if len(legal.offsets) != len(obs) + 1:
        raise ActionError(f"{len(legal.offsets) - 1} sets of actions for {len(obs)} states; accepted: one set a state.")
    counts = legal.offsets.diff()
    if counts.device.type != "cpu" or not len(counts):
        return counts, None, None
    low, high = (int(count) for count in counts.aminmax())  # sync: on the host already
    if low < 1:
        state = int(counts.lt(1).nonzero()[0])  # sync: an error
        raise ActionError(f"state {state} has no legal action to choose: its game must have ended before.")
    return counts, low, high
