"""The tensors that travel between collector, replay and update, and the letters of their shapes.

Shape letters, used in comments all over the package: T steps (or bars), N envs, B batch rows, A actions, D observation
features. `terminated` and `truncated` are never merged: a value is bootstrapped across a truncation, not a termination.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from rlbench.actions import ActionSets


class Transitions(NamedTuple):
    """What replay stores and gives back: arrays, tensors or lists of rows, by the variant that holds them.

    With n-step returns `reward` is the discounted sum of the rewards up to `next_obs`, and `discount` is gamma to the number
    of steps between; with one step it is gamma itself.
    """

    obs: Any  # (B, D) float32
    action: Any  # (B,) int64
    reward: Any  # (B,) float32
    next_obs: Any  # (B, D) float32: the true last observation where an episode ended
    terminated: Any  # (B,) float32 of 0 and 1
    truncated: Any  # (B,) float32 of 0 and 1
    discount: Any  # (B,) float32
    next_mask: Any = None  # (B, A) float32 of 0 and 1, or None where every action is always legal
    weight: Any = None  # (B,) float32 importance weights of prioritised replay, or None where all are 1


class Decisions(NamedTuple):
    """What PPO learns from: B samples, each a state, the action taken there, and how well that went."""

    obs: Tensor  # (B, D) float32
    legal: ActionSets | Tensor | None  # packed sets; or a mask (B, A) bool; or None, where every action is always legal
    choice: Tensor  # (B,) int64: the action's place in its state's set; without sets, its number
    log_prob: Tensor  # (B,) float32, of that choice under the policy that ratios are taken to
    value: Tensor  # (B,) float32, what the acting policy expected
    advantage: Tensor  # (B,) float32
    target: Tensor  # (B,) float32: advantage + value, what the value head learns


class Rollout(NamedTuple):
    """T steps of N environments, as PPO collects them. Flat rows go step by step: row t * N + i is step t of env i."""

    obs: Tensor  # (T, N, D) float32
    legal: ActionSets | Tensor | None  # packed sets of T * N states; or a mask (T, N, A) bool; or None
    choice: Tensor  # (T, N) int64, as in `Decisions`
    log_prob: Tensor  # (T, N) float32
    value: Tensor  # (T, N) float32
    next_value: Tensor  # (T, N) float32: of where the step led, to whoever acts there; before any reset
    reward: Tensor  # (T, N) float32
    terminated: Tensor  # (T, N) bool
    truncated: Tensor  # (T, N) bool
    valid: Tensor | None = None  # (T, N) bool; None: all rows are real transitions


class Evaluated(NamedTuple):
    """What a policy says of B decisions."""

    log_prob: Tensor  # (B,) of the choices
    entropy: Tensor  # (B,) of the distributions over each state's legal actions
    value: Tensor  # (B,)


class PPOUpdated(NamedTuple):
    """What an update of PPO hands back, each a detached tensor (), means over the minibatch."""

    loss: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor  # mean of (ratio - 1) - log ratio (Schulman, 2020)
    clip_fraction: Tensor  # share of samples whose ratio lay beyond clip_coef
    ratio_error: Tensor  # largest |ratio - 1|: 0 but for rounding before the first update of a round


class Updated(NamedTuple):
    """What an update hands back, detached."""

    loss: Tensor  # () or (K,), one a minibatch
    target: Tensor  # (B,) Bellman targets
    td_error: Tensor  # (B,) q(s, a) - target, before the update


class Layout(NamedTuple):
    """A flat observation that is a window of bars: `window` times `features` numbers, oldest first, then `own` numbers."""

    window: int
    features: int
    own: int


class Collected(NamedTuple):
    """One call of a collector: N rows, of which those with `valid` are real transitions."""

    obs: np.ndarray  # (N, D) float32
    action: np.ndarray  # (N,) int64
    reward: np.ndarray  # (N,) float64
    next_obs: np.ndarray  # (N, D) float32: before any reset
    terminated: np.ndarray  # (N,) bool
    truncated: np.ndarray  # (N,) bool
    next_mask: np.ndarray | None  # (N, A) bool
    valid: np.ndarray | None  # (N,) bool; None: all are real. False: a call that only handed back a reset
