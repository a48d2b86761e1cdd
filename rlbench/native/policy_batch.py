"""What is handed to the native policy, looked at before C sees it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionError, ActionSets, check_sets
from rlbench.native.policy import library


def rows_of(obs: Tensor, legal: Any, width: int) -> Tensor:
    """Observations as rows whose numbers lie side by side.

    Raises:
        ActionError: where they are not (B, D) float32 on the CPU, one row a state of the packed sets.
    """
    if not isinstance(legal, ActionSets):
        raise ActionError(f"legal is {type(legal).__name__}; accepted by native code are packed sets, an ActionSets.")
    for name, values in (("obs", obs), ("ids", legal.ids), ("offsets", legal.offsets)):
        check_tensor(name, values)
    states = len(legal.offsets) - 1 if legal.offsets.ndim == 1 else -1
    if obs.shape != (states, width) or obs.dtype != torch.float32 or not obs.is_cpu:
        raise ActionError(
            f"obs {tuple(obs.shape)} {obs.dtype} on {obs.device} for {states} sets of actions are refused; accepted by native "
            f"code: (B, {width}) torch.float32 on cpu, one row a set."
        )
    return obs if obs.stride(1) == 1 or width == 1 else obs.contiguous()


def sets_of(legal: ActionSets, choice: Tensor | None = None) -> tuple[ActionSets, int]:
    """The sets in the form that C reads, and the largest number of actions of a state.

    Raises:
        ActionError: naming the state that has no action, or not the one chosen, or what else is wrong.
    """
    ids, offsets = legal
    plain = ids.dtype == offsets.dtype == torch.int64 and ids.ndim == offsets.ndim == 1 and len(offsets)
    if not plain or not (ids.is_cpu and offsets.is_cpu):
        check_sets(legal)
        raise ActionError(f"sets on {ids.device} are refused; accepted by native code: cpu.")
    sets, states = ActionSets(ids.contiguous(), offsets.contiguous()), len(offsets) - 1
    place = None if choice is None else choice.data_ptr()
    most = library("policy").policy_check(states, sets.offsets.data_ptr(), len(ids), place)
    if most < 0:
        check_sets(sets)
        assert choice is not None
        state = -1 - most
        raise ActionError(
            f"state {state} has {int(sets.counts[state])} legal actions, and choice {int(choice[state])} is refused; accepted is "
            "a place in its list, from 0."
        )
    return sets, most


def column(name: str, values: Tensor, rows: int, kind: torch.dtype = torch.float32) -> Tensor:
    """One number a row, side by side.

    Raises:
        ActionError: for another shape or type, and for another device.
    """
    check_tensor(name, values)
    if values.shape != (rows,) or values.dtype != kind or not values.is_cpu:
        raise ActionError(
            f"{name} {tuple(values.shape)} {values.dtype} on {values.device} is refused; accepted by native code: ({rows},) "
            f"{kind} on cpu."
        )
    return values.contiguous()


def check_tensor(name: str, values: Any) -> None:
    """Refuse what is no tensor.

    Raises:
        ActionError: saying what it is.
    """
    if not isinstance(values, Tensor):
        raise ActionError(f"{name} is of type {type(values).__name__}; accepted by native code: a tensor.")
