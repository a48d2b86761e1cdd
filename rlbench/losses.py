"""The mathematics of the updates, as pure functions of tensors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def next_values(q_target: Tensor, q_online: Tensor | None, next_mask: Tensor | None) -> Tensor:
    """Value of the next state: the best *legal* action's.

    DQN (Mnih et al., 2015): max over legal a of q_target(s', a). Double DQN (van Hasselt et al., 2016): q_target of the action
    that the online network prefers among the legal ones. A state without a legal action has the value 0.

    Args:
        q_target: (B, A) target network at s'.
        q_online: (B, A) online network at s', for Double DQN; None for DQN.
        next_mask: (B, A), nonzero where an action is legal in s'; None where all are.

    Returns:
        (B,)
    """
    chooser = q_target if q_online is None else q_online
    if next_mask is None:
        if q_online is None:
            return q_target.amax(dim=1)
        return q_target.gather(1, chooser.argmax(dim=1, keepdim=True)).squeeze(1)
    legal = next_mask != 0
    best = chooser.masked_fill(~legal, -torch.inf).argmax(dim=1, keepdim=True)  # (B, 1)
    values = q_target.gather(1, best).squeeze(1)
    return torch.where(legal.any(dim=1), values, torch.zeros_like(values))


def td_target(reward: Tensor, discount: Tensor, terminated: Tensor, next_value: Tensor) -> Tensor:
    """Bellman target r + discount · (1 - terminated) · V(s'), each (B,). Truncation does not stop the bootstrap.

    A terminated row's target is its reward even where V(s') is not finite.
    """
    return reward + torch.where(terminated != 0, torch.zeros_like(next_value), discount * next_value)


def td_error(q: Tensor, action: Tensor, target: Tensor) -> Tensor:
    """q(s, a) - target, (B,).

    Args:
        q: (B, A) online network at s.
        action: (B,) int64.
        target: (B,), through which no gradient flows.
    """
    chosen = q.gather(1, action.unsqueeze(1)).squeeze(1)  # (B,)
    if chosen.shape != target.shape:  # PyTorch would broadcast (B,) against (B, 1) to a (B, B) loss
        raise ValueError(f"targets have shape {tuple(target.shape)}; accepted is {tuple(chosen.shape)}, one a row.")
    return chosen - target


def td_loss(error: Tensor, huber: bool = False, weight: Tensor | None = None) -> Tensor:
    """Mean over rows of the squared error, or of Huber's loss with its knee at 1, each times its weight.

    Args:
        error: (B,) temporal-difference errors.
        weight: (B,) importance weights (Schaul et al., 2016); None: all 1.
    """
    loss = F.smooth_l1_loss(error, torch.zeros_like(error), reduction="none") if huber else error * error
    return (loss if weight is None else weight * loss).mean()
