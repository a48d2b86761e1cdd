"""Episodes as somebody's own recorder gives them: lists of steps, each a dict or a tuple of plain Python or NumPy values.

A step has, in this order where it is a tuple:

    features      D numbers
    legal         ids of the legal actions, whole numbers from 0 to 2^64 - 1
    action        the id that was taken
    reward        a number, to the player who moved
    log_prob      of that action under the policy that took it; for all steps or for none
    terminated    whether the game ended here; left out, it did on an episode's last step and on no other
    truncated     whether recording was broken off here instead; then `next_features` say where that was
    next_features D numbers

The last four may be left out or None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from rlbench.actions import ActionError, ids_of, pack
from rlbench.episodes.checks import EpisodeError
from rlbench.episodes.container import Episodes


class Step(NamedTuple):
    features: Any
    legal: Any
    action: Any
    reward: Any
    log_prob: Any = None
    terminated: Any = None
    truncated: Any = None
    next_features: Any = None


NEEDED = Step._fields[:4]


class _Read(NamedTuple):
    """A step in the types of `Episodes`."""

    features: np.ndarray  # (D,)
    ids: np.ndarray  # (K,) int64
    choice: int
    reward: float
    log_prob: float | None
    terminated: bool
    truncated: bool
    last: np.ndarray | None  # (D,)


def from_lists(
    episodes: Iterable[Iterable[Any]],
    *,
    alternating: bool = False,
    game: str = "game",
    device: str | torch.device = "cpu",
) -> Episodes:
    """Pack episodes, each a list of steps.

    Args:
        alternating: whether two players take turns in a zero-sum game, so that the mover changes at every step.

    Raises:
        EpisodeError: naming the episode and the step of the first thing that cannot be used.
    """
    rows: list[_Read] = []
    bounds = [0]
    for e, steps in enumerate(episodes):
        listed = list(steps)
        if not listed:
            raise EpisodeError(f"episode {e} has no step; accepted: at least one.")
        for t, step in enumerate(listed):
            size = len(rows[0].features) if rows else None
            rows.append(_read(step, f"episode {e}, step {t}", t == len(listed) - 1, size))
        bounds.append(len(rows))
    known = _all_or_none([row.log_prob for row in rows], bounds)
    size = len(rows[0].features) if rows else 0
    ends = [rows[b - 1].last for b in bounds[1:]]
    last = [np.zeros(size, np.float32) if end is None else end for end in ends]

    def tensor(values: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(np.array(values), dtype=dtype, device=device)

    return Episodes(
        obs=tensor([row.features for row in rows], torch.float32).reshape(len(rows), size),
        legal=pack([row.ids for row in rows], device),
        choice=tensor([row.choice for row in rows], torch.int64),
        log_prob=tensor([row.log_prob or 0.0 for row in rows], torch.float32),
        reward=tensor([row.reward for row in rows], torch.float32),
        terminated=tensor([row.terminated for row in rows], torch.bool),
        truncated=tensor([row.truncated for row in rows], torch.bool),
        last_obs=tensor(last, torch.float32).reshape(len(last), size),
        bounds=tensor(bounds, torch.int64),
        alternating=alternating,
        behaviour=known,
        game=game,
    )


def _read(given: Any, where: str, is_last: bool, size: int | None) -> _Read:
    step = _fields(given, where)
    features = _numbers(step.features, f"{where}: features", size)
    try:
        ids = ids_of(step.legal, f"{where}: legal")
        action = ids_of([step.action], f"{where}: action")[0]
    except ActionError as error:
        raise EpisodeError(str(error)) from error
    if not len(ids):
        raise EpisodeError(
            f"{where}: no legal action in a state that was acted in; leave out states of finished games."
        )
    places = np.flatnonzero(ids == action)
    if not len(places):
        raise EpisodeError(f"{where}: the action {step.action!r} is not among the {len(ids)} legal ids of its state.")
    reward = _number(step.reward, f"{where}: reward")
    log_prob = None if step.log_prob is None else _number(step.log_prob, f"{where}: log_prob")
    truncated = bool(step.truncated)
    terminated = is_last and not truncated if step.terminated is None else bool(step.terminated)
    if (terminated or truncated) != is_last or (terminated and truncated):
        raise EpisodeError(
            f"{where}: terminated={terminated} and truncated={truncated} on {'the last' if is_last else 'an earlier'} step; "
            "accepted: one of them on an episode's last step, none on those before."
        )
    if truncated and step.next_features is None:
        raise EpisodeError(f"{where}: truncated without next_features; what is to come there counts: say where it led.")
    last = _numbers(step.next_features, f"{where}: next_features", len(features)) if truncated else None
    return _Read(features, ids, int(places[0]), reward, log_prob, terminated, truncated, last)


def _fields(given: Any, where: str) -> Step:
    """A dict or a tuple as a `Step`."""
    if isinstance(given, Mapping):
        missing = [name for name in NEEDED if name not in given]
        unknown = [name for name in given if name not in Step._fields]
        if missing or unknown:
            what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is unknown"
            raise EpisodeError(
                f"{where}: {what}; accepted: {', '.join(NEEDED)}, and perhaps {', '.join(Step._fields[4:])}."
            )
        return Step(**given)
    if isinstance(given, str | bytes) or not hasattr(given, "__len__") or not 4 <= len(given) <= len(Step._fields):
        raise EpisodeError(f"{where}: {given!r} is no step; accepted: a dict or tuple of {', '.join(Step._fields)}.")
    return Step(*given)


def _numbers(given: Any, where: str, size: int | None) -> np.ndarray:
    """(D,) float32."""
    try:
        values = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        raise EpisodeError(f"{where}: {given!r} are no numbers.") from error
    if values.ndim != 1 or (size is not None and len(values) != size):
        accepted = "one row of numbers" if size is None else f"{size}, as in the step recorded first"
        raise EpisodeError(f"{where}: of shape {values.shape}; accepted: {accepted}.")
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise EpisodeError(f"{where}: number {place} is {values[place]}; accepted: finite float32.")
    return values


def _number(given: Any, where: str) -> float:
    try:
        return float(_numbers([given], where, 1)[0])
    except EpisodeError:
        raise EpisodeError(f"{where}: {given!r} is refused; accepted: one finite number.") from None


def _all_or_none(log_probs: list[float | None], bounds: list[int]) -> bool:
    """Whether log-probabilities are known: of all steps, or of none."""
    known = [value is not None for value in log_probs]
    if any(known) and not all(known):
        row = known.index(False)
        episode = int(np.searchsorted(bounds, row, side="right")) - 1
        raise EpisodeError(
            f"episode {episode}, step {row - bounds[episode]}: log_prob is missing, though other steps have theirs; "
            "accepted: on all steps, or on none."
        )
    return all(known) and bool(known)
