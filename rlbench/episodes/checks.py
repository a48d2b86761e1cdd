"""What must be true of recorded episodes. It is looked at where they are made, so that nothing behind needs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import torch
from torch import Tensor

from rlbench.actions import ActionError, check_sets

if TYPE_CHECKING:
    from rlbench.episodes.container import Episodes

ROUNDING = 1e-4  # how far above 0 a log-probability may lie


class EpisodeError(ValueError):
    """Episodes that cannot be used; the message names file, field, episode and step, and what is accepted."""


def check_episodes(episodes: Episodes) -> None:
    """Raise an EpisodeError for the first thing that is wrong."""
    _shapes(episodes)
    _bounds(episodes)
    try:
        check_sets(episodes.legal)
    except ActionError as error:
        raise EpisodeError(f"legal: {_named(episodes, str(error))}") from error
    _values(episodes)


def _shapes(episodes: Episodes) -> None:
    size, rows = episodes.obs.shape[-1] if episodes.obs.ndim == 2 else 0, len(episodes.choice)
    games, f32, i64 = max(0, len(episodes.bounds) - 1), torch.float32, torch.int64
    accepted = {
        "bounds": ((games + 1,), i64),
        "choice": ((rows,), i64),
        "obs": ((rows, size), f32),
        "log_prob": ((rows,), f32),
        "reward": ((rows,), f32),
        "terminated": ((rows,), torch.bool),
        "truncated": ((rows,), torch.bool),
        "last_obs": ((games, size), f32),
    }
    for name, (shape, dtype) in accepted.items():
        field = getattr(episodes, name)
        if tuple(field.shape) != shape or field.dtype != dtype:
            raise EpisodeError(
                f"{name}: {tuple(field.shape)} {field.dtype} is refused; accepted with {rows} steps in {games} episodes: "
                f"{shape} {dtype}."
            )
    if len(episodes.legal.offsets) != rows + 1:
        raise EpisodeError(
            f"legal: offsets of {len(episodes.legal.offsets) - 1} states; accepted: one a step, {rows}, and the end."
        )


def _bounds(episodes: Episodes) -> None:
    bounds, rows = episodes.bounds, len(episodes.choice)
    if int(bounds[0]) != 0 or int(bounds[-1]) != rows:  # sync: a check
        raise EpisodeError(
            f"bounds: from {int(bounds[0])} to {int(bounds[-1])}; accepted: from 0 to {rows}, the steps."
        )
    if bool((bounds.diff() < 1).any()):  # sync: a check
        raise EpisodeError(
            f"bounds: episode {int(bounds.diff().lt(1).int().argmax())} has no step; accepted: at least one."
        )


def _values(episodes: Episodes) -> None:
    """Only the first row that is wrong is named."""
    counts, ends = episodes.legal.counts, torch.zeros_like(episodes.terminated)
    ends[episodes.bounds[1:] - 1] = True
    over, log_prob = episodes.terminated | episodes.truncated, episodes.log_prob
    off_place = (episodes.choice < 0) | (episodes.choice >= counts)
    found = (
        ("obs", ~episodes.obs.isfinite().all(1), "a feature that is no finite number"),
        (
            "choice",
            off_place,
            "a choice beyond its state's legal actions; accepted: places from 0 to their number less 1",
        ),
        (
            "log_prob",
            ~(log_prob.isfinite() & (log_prob <= ROUNDING)),
            "a log-probability that is not finite and at most 0",
        ),
        (
            "log_prob",
            (log_prob != 0) & (not episodes.behaviour),
            "not 0, though behaviour=False says that none is known",
        ),
        ("reward", ~episodes.reward.isfinite(), "a reward that is no finite number"),
        ("terminated", episodes.terminated & episodes.truncated, "an end both terminated and truncated; accepted: one"),
        ("terminated", over & ~ends, "an end before the episode's last step"),
        ("terminated", ends & ~over, "a last step neither terminated nor truncated; accepted: whole episodes"),
    )
    for name, wrong, what in found:
        if bool(wrong.any()):  # sync: a check
            _refuse(episodes, name, wrong, what)
    lost = ~episodes.last_obs.isfinite().all(1)
    if bool(lost.any()):  # sync: a check
        raise EpisodeError(f"last_obs: episode {int(lost.int().argmax())}: a feature that is no finite number.")


def _refuse(episodes: Episodes, name: str, wrong: Tensor, what: str) -> NoReturn:
    row = int(wrong.int().argmax())  # sync: an error
    raise EpisodeError(f"{name}: {place_of(episodes.bounds, row)}: {what}.")


def place_of(bounds: Tensor, row: int) -> str:
    """The episode and step of a row of all steps."""
    episode = int((bounds[1:] <= row).sum())  # sync: an error
    return f"episode {episode}, step {row - int(bounds[episode])}"


def _named(episodes: Episodes, message: str) -> str:
    """An error about a state, with its episode and step."""
    empty = episodes.legal.counts == 0
    if len(empty) and bool(empty.any()) and "no legal action" in message:  # sync: an error
        return f"{place_of(episodes.bounds, int(empty.int().argmax()))}: {message}"
    return message
