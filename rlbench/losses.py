"""The mathematics of the updates, as pure functions of tensors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from rlbench.batch import Decisions, Evaluated, PPOUpdated


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


def ppo_loss(
    now: Evaluated,
    batch: Decisions,
    clip_coef: float,
    ent_coef: float,
    vf_coef: float,
    norm_adv: bool = True,
    clip_vloss: bool = False,
) -> PPOUpdated:
    """The loss of PPO (Schulman et al., 2017): clipped surrogate, value error, entropy bonus; in float32.

    With r = exp(log_prob now - log_prob then) and advantages A:  mean of -min(r A, clip(r, 1 - c, 1 + c) A)
    + vf_coef * mean of (value - target)^2 / 2  - ent_coef * mean entropy.

    Args:
        now: what the policy being trained says of the batch's decisions.
        norm_adv: bring the advantages to mean 0 and standard deviation 1; a single sample is left as it is.
        clip_vloss: let a value move by clip_coef at most from what it was, or pay the larger of both errors.

    Returns:
        Only `loss` carries a gradient.
    """
    log_ratio = now.log_prob - batch.log_prob
    ratio = log_ratio.exp()
    advantage = normalised(batch.advantage) if norm_adv else batch.advantage
    surrogate = torch.minimum(advantage * ratio, advantage * ratio.clamp(1 - clip_coef, 1 + clip_coef))
    error = (now.value - batch.target).square()
    if clip_vloss:
        moved = batch.value + (now.value - batch.value).clamp(-clip_coef, clip_coef)
        error = torch.maximum(error, (moved - batch.target).square())
    policy_loss, value_loss, entropy = -surrogate.mean(), 0.5 * error.mean(), now.entropy.mean()
    loss = policy_loss + vf_coef * value_loss - ent_coef * entropy
    with torch.no_grad():
        off = (ratio - 1).abs()
        approx_kl = (ratio - 1 - log_ratio).mean()
        others = (policy_loss, value_loss, entropy, approx_kl, (off > clip_coef).float().mean(), off.max())
        return PPOUpdated(loss, *(part.detach() for part in others))


def normalised(advantage: Tensor) -> Tensor:
    """Advantages (B,) with mean 0 and standard deviation 1 (of the sample, with n - 1)."""
    if len(advantage) < 2:
        return advantage
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)
