"""The tensors that travel between collector, replay and update, and the letters of their shapes.

Shape letters, used in comments all over the package: T steps (or bars), N envs, B batch rows, A actions, D observation
features. `terminated` and `truncated` are never merged: a value is bootstrapped across a truncation, not a termination.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from torch import Tensor


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
