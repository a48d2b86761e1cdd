"""All states at once, their actions packed one after another: nothing is computed for an action that is not there.

The state network runs once for B states, the rest once for A actions; each action finds its state's part by an index, and the
softmax is one over spans. Where all states have as many actions, or there is one state alone, the same numbers are looked at
as a matrix (B, K), and fewer operations do. What lies between the two linear layers and the loss has its backward pass
written by hand: a dozen operations on what the forward pass has left, where autograd would record and walk two dozen.
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.evaluations.views import View, view_of
from rlbench.models.action_scorer import ActionScorer
from rlbench.models.encodings import Encode, encode_onto, sums_by_bit

SMALL = 768  # actions in a batch below which it is autograd's; from here on tables are made of weights, too


class Packed:
    """Asks about all states in one go."""

    build_s, recompiles = 0.0, 0

    def __init__(self, model: ActionScorer) -> None:
        self.model = model

    @torch.no_grad()
    def log_probs(self, obs: Tensor, legal: ActionSets, view: View | None = None) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) of all legal actions and values (B,) of states obs (B, D), without a gradient.

        Args:
            view: `view_of(obs, legal)`, where it was kept.
        """
        view = view or view_of(obs, legal)
        joint, value = self.model.states(obs)
        hidden = view.encode(self.model.encode, legal.ids, self.model.action, joint).relu_()
        return view.log_softmax(view.shape(product(hidden, self.model.score))).flatten(), value

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor, view: View | None = None) -> Evaluated:
        """Log-probabilities of the choices (B,), entropies and values (B,)."""
        view = view or view_of(obs, legal)
        model = self.model
        joint, value = model.states(obs)
        if len(legal.ids) < SMALL and obs.device.type == "cpu":
            return Evaluated(*chosen_by_autograd(model, joint, legal.ids, view, choice), value)
        log_prob, entropy = Chosen.apply(
            joint, model.action, model.score, model.encode, legal.ids, view, view.at(choice)
        )
        return Evaluated(log_prob, entropy, value)


def chosen_by_autograd(
    model: ActionScorer, joint: Tensor, ids: Tensor, view: View, choice: Tensor
) -> tuple[Tensor, Tensor]:
    """What `Chosen` computes, in few calls of Python's: on the CPU each costs more than the arithmetic of a small batch."""
    hidden = encode_onto(model.encode, ids, model.action, view.rows_of(joint)).relu_()
    log_p = view.matrix(product(hidden, model.score)).log_softmax(1)  # (B, K)
    log_prob = log_p.gather(1, choice.unsqueeze(1)).squeeze(1)
    return log_prob, (log_p.exp() * log_p).sum(1).neg()


class Chosen(torch.autograd.Function):
    """From a state's part (B, H) and the actions' ids: the choices' log-probabilities (B,), and the entropies (B,).

    With s_a = v . relu(joint + W bits_a), p the softmax of a state's s, and E its entropy:
    d log p_c / d s_a = [a = c] - p_a  and  d E / d s_a = -p_a (log p_a + E). Let M be 1 where the relu let through (A, H). Then
    with d the gradient with respect to s, that of `joint` is v times the states' sums of d_a M_a; that of W is v times
    (d M)^T bits; and that of v is made from those same two sums, without another look at what is A by H.
    """

    @staticmethod
    def forward(
        ctx: Any, joint: Tensor, weight: Tensor, v: Tensor, encode: Encode, ids: Tensor, view: View, at: Tensor
    ) -> tuple[Tensor, Tensor]:
        hidden = view.encode(encode, ids, weight, joint).relu_()  # (A, H)
        log_p = view.log_softmax(view.shape(product(hidden, v)))
        p = log_p.exp()
        entropy = view.sums(p * log_p).neg_()
        ctx.save_for_backward(hidden.gt_(0), joint, weight, v, log_p, p, entropy, ids, at)
        ctx.view = view
        return log_p.flatten().index_select(0, at), entropy

    @staticmethod
    def backward(ctx: Any, d_log_prob: Tensor, d_entropy: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # PyTorch's own decorator for this costs as much as five operations
            raise RuntimeError("there is no second derivative of this evaluation: leave out create_graph=True.")
        passed, joint, weight, v, log_p, p, entropy, ids, at = ctx.saved_tensors
        view: View = ctx.view
        with without_autocast(ids.device.type):
            pull = torch.addcmul(d_log_prob, d_entropy, entropy).neg_()  # (B,)
            d_scores = torch.addcmul(view.spread(pull), view.spread(d_entropy), log_p, value=-1).mul_(p)
            d_scores = d_scores.flatten().index_add_(0, at, d_log_prob).to(passed.dtype)  # (A,)
            by_state = view.weighted_rows(passed, d_scores)  # (B, H)
            by_bit = sums_by_bit(ids, passed, d_scores).t()  # (H, 64)
            d_v = (joint * by_state).sum(0) + (weight * by_bit).sum(1)
        return by_state * v, (by_bit * v.unsqueeze(1)).contiguous(), d_v, None, None, None, None


def product(hidden: Tensor, v: Tensor) -> Tensor:
    """(A, H) times v (H,), in the type of v under autocast, too."""
    with without_autocast(hidden.device.type):
        return hidden.to(v.dtype) @ v


def without_autocast(device_type: str) -> AbstractContextManager:
    """Turns autocast off where it is on; asking is ten times cheaper than turning."""
    if torch.is_autocast_enabled(device_type):
        return torch.autocast(device_type, enabled=False)
    return contextlib.nullcontext()
