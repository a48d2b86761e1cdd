"""What games hand over, looked at: its form where a rollout begins, its numbers where it ends.

A game's mistake would otherwise be an error of PyTorch's about shapes, or a NaN in every weight, much later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionError, ActionSets, check_sets
from rlbench.batch import Rollout
from rlbench.envs.spaces import EnvError
from rlbench.trainers.finite import REMEDY

STEP = {"reward": torch.float32, "terminated": torch.bool, "truncated": torch.bool}


def check_position(games: Any, obs: Any, legal: Any, where: str = "at the first reset") -> None:
    """Refuse observations and sets of actions that are not of the form that `rlbench.envs.games.Position` says.

    Raises:
        EnvError, ActionError: naming the games, what was found and what is accepted.
    """
    _check(games, "obs", obs, (games.num_envs, games.obs_size), torch.float32, where)
    if not isinstance(legal, ActionSets):
        _refuse(
            games, where, f"legal is of type {type(legal).__name__}; accepted: an ActionSets, as rlbench.pack makes"
        )
    try:
        check_sets(legal)
    except ActionError as error:
        raise ActionError(f"{games.name}, {where}: {error}") from error
    for name, tensor in zip(legal._fields, legal, strict=True):
        if tensor.device.type != torch.device(games.device).type:
            _refuse(games, where, f"legal.{name} lies on {tensor.device}; accepted: {games.device}")
    if len(legal.offsets) != games.num_envs + 1:
        sets = len(legal.offsets) - 1
        _refuse(games, where, f"legal has {sets} sets of actions; accepted: {games.num_envs}, one a game")


def check_form(games: Any, step: Any, number: int) -> None:
    """Refuse a step that is not of the form of a `GameStep`; its numbers are not looked at, so that nothing waits for them."""
    where = f"step {number}"
    missing = [name for name in ("obs", "legal", *STEP, "next_obs") if not hasattr(step, name)]
    if missing:
        found = f"step() gave a {type(step).__name__} without {', '.join(missing)}"
        _refuse(games, where, f"{found}; accepted: a rlbench.envs.games.GameStep")
    n, d = games.num_envs, games.obs_size
    for name, kind in STEP.items():
        _check(games, name, getattr(step, name), (n,), kind, where)
    for name in ("obs", "next_obs"):
        _check(games, name, getattr(step, name), (n, d), torch.float32, where)
    if not isinstance(step.legal, ActionSets) or len(step.legal.offsets) != n + 1:
        check_position(games, step.obs, step.legal, where)


def check_steps(games: Any, steps: Sequence[Any], first_step: int) -> None:
    """Refuse the first of some steps, numbered from `first_step`, whose form is wrong, sets of actions included."""
    for number, step in enumerate(steps, start=first_step):
        check_form(games, step, number)
        check_position(games, step.obs, step.legal, f"step {number}")


def _check(games: Any, name: str, found: Any, shape: tuple[int, ...], kind: torch.dtype, where: str) -> None:
    if isinstance(found, Tensor):
        if found.shape == shape and found.dtype == kind and found.device.type == torch.device(games.device).type:
            return
        found = f"{tuple(found.shape)} {found.dtype} on {found.device}"
    else:
        found = f"of type {type(found).__name__}"
    _refuse(games, where, f"{name} is {found}; accepted: {shape} {kind} on {games.device}")


def _refuse(games: Any, where: str, text: str) -> None:
    raise EnvError(f"{games.name}, {where}: {text}.")


def check_rollout(games: Any, rollout: Rollout, obs: Tensor, first_step: int) -> None:
    """Refuse a rollout with a number that is not finite, or a state without an action. One wait for the device if all is well.

    Args:
        obs: (N, D), the states to act in next, whose values advantages are made from.
        first_step: the number of the rollout's first step.

    Raises:
        EnvError, ActionError: naming the game and the step; a state's is that of the step that is taken there.
    """
    if not rollout.reward.dtype == rollout.obs.dtype == torch.float32:
        found = f"reward {rollout.reward.dtype} and obs {rollout.obs.dtype} in some step"
        _refuse(
            games, f"steps {first_step} to {first_step + len(rollout.obs) - 1}", f"{found}; accepted: torch.float32"
        )
    empty = rollout.legal.counts == 0
    good = rollout.obs.isfinite().all() & rollout.reward.isfinite().all() & obs.isfinite().all() & ~empty.any()
    if good:  # sync: once a rollout
        return
    _name(games, ~rollout.obs.isfinite().all(-1), "a feature of the state", first_step)
    _name(games, ~rollout.reward.isfinite(), "the reward", first_step)
    if empty.any():  # sync: for an error
        step, game = divmod(int(empty.nonzero()[0]), games.num_envs)  # sync: for an error
        raise ActionError(
            f"{games.name}, game {game}: the state at step {first_step + step} has no legal action, but its game goes on."
        )
    _name(games, ~obs.isfinite().all(-1)[None], "a feature of the state", first_step + len(rollout.obs))


def check_ends(games: Any, next_obs: Tensor, truncated: Tensor, first_step: int) -> None:
    """Refuse features (T, N, D) of where truncated steps led, whose values are used, that are not finite."""
    _name(games, truncated & ~next_obs.isfinite().all(-1), "a feature in next_obs", first_step)


def _name(games: Any, bad: Tensor, what: str, first_step: int) -> None:
    """Raise an error that names the first entry of bad (T, N), if there is one."""
    if bad.any():  # sync: where something is wrong, and for games with time limits
        step, game = divmod(int(bad.flatten().nonzero()[0]), bad.shape[1])  # sync: for an error
        raise EnvError(f"{games.name}, game {game}: {what} at step {first_step + step} is not finite; {REMEDY}")
