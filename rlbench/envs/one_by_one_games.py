"""N games in plain Python, stepped one after another, behind the protocol of games side by side.

What a game hands over is looked at, once a step: its features, its legal ids, its reward. A game's mistake is one error that
names the game, the episode and the step; it would otherwise be a NaN in the network, much later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import ActionError, ActionSets, ids_of, pack, to_unsigned
from rlbench.envs.games import GameStep, OneGame, Position
from rlbench.envs.spaces import EnvError


class OneByOneGames:
    """N of a `OneGame` (the protocol `Games`); one that has ended starts its next episode in the same step.

    Args:
        make_one: makes one game; called `num_envs` times.
        seed: of all games; each gets it in `reset(seed, episode, index)`.
        device: where the tensors go that are handed out.

    Raises:
        EnvError: for a game without legal action in a live state, ids beyond 64 bits, features of another length than
            obs_size or not finite, a step that gives something else than (reward, ended), and an id that is not legal.
    """

    def __init__(
        self,
        make_one: Callable[[], OneGame],
        num_envs: int,
        seed: int,
        device: str | torch.device = "cpu",
        name: str = "",
    ) -> None:
        if num_envs < 1:
            raise EnvError(f"num_envs={num_envs} is refused; accepted: 1 or more games.")
        self.games = [make_one() for _ in range(num_envs)]
        first = self.games[0]
        self.name = name or type(first).__name__
        missing = [
            part
            for part in ("obs_size", "alternating", "reset", "features", "legal", "step")
            if not hasattr(first, part)
        ]
        if missing:
            raise EnvError(f"{self.name} lacks {', '.join(missing)}: see rlbench.envs.games.OneGame.")
        self.num_envs, self.seed = num_envs, seed
        self.obs_size, self.alternating = int(first.obs_size), bool(first.alternating)
        self.device = torch.device(device)
        self._episodes = [0] * num_envs
        self._steps = [0] * num_envs
        self._legal: list[np.ndarray] = []  # of each game, int64

    def reset(self) -> Position:
        """All games at the start of their first episode."""
        self._episodes, self._steps = [0] * self.num_envs, [0] * self.num_envs
        obs = np.empty((self.num_envs, self.obs_size), np.float32)
        self._legal = [self._start(i, obs) for i in range(self.num_envs)]
        return Position(self._tensor(obs), self._sets())

    def step(self, ids: Tensor) -> GameStep:
        """Take the legal action ids (N,) int64, one a game."""
        chosen = self._checked_ids(ids)
        next_obs = np.empty((self.num_envs, self.obs_size), np.float32)
        reward, ended = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, bool)
        for i, (game, action_id) in enumerate(zip(self.games, chosen, strict=True)):
            reward[i], ended[i] = self._outcome(game.step(action_id), i)
            self._steps[i] += 1
            self._features(i, next_obs)
            if not ended[i]:
                self._legal[i] = self._ids(i)
        obs = next_obs.copy()
        for i in np.flatnonzero(ended).tolist():
            self._episodes[i] += 1
            self._steps[i] = 0
            self._legal[i] = self._start(i, obs)
        return GameStep(
            self._tensor(obs),
            self._sets(),
            self._tensor(reward),
            self._tensor(ended),
            torch.zeros(self.num_envs, dtype=torch.bool, device=self.device),
            self._tensor(next_obs),
        )

    def _start(self, i: int, obs: np.ndarray) -> np.ndarray:
        self.games[i].reset(self.seed, self._episodes[i], i)
        self._features(i, obs)
        return self._ids(i)

    def _features(self, i: int, rows: np.ndarray) -> None:
        found = self.games[i].features()
        try:
            with np.errstate(over="ignore"):  # refused below
                row = np.asarray(found, np.float32)
        except (TypeError, ValueError) as error:
            raise EnvError(
                f"{self._where(i)}: features() gave {found!r}; accepted: {self.obs_size} numbers."
            ) from error
        if row.shape != (self.obs_size,):
            raise EnvError(f"{self._where(i)}: features() has shape {row.shape}; obs_size says ({self.obs_size},).")
        if not np.isfinite(row).all():
            at = int(np.flatnonzero(~np.isfinite(row))[0])
            raise EnvError(f"{self._where(i)}: feature {at} is {row[at]}; accepted are finite numbers in float32.")
        rows[i] = row

    def _ids(self, i: int) -> np.ndarray:
        try:
            found = ids_of(self.games[i].legal(), self._where(i))
        except ActionError as error:
            raise EnvError(str(error)) from error
        if not len(found):
            raise EnvError(
                f"{self._where(i)}: legal() is empty, but the game has not ended. Where only passing is left, give an id for "
                "it; where nothing is, let step() say that the game has ended."
            )
        return found

    def _outcome(self, found: Any, i: int) -> tuple[float, bool]:
        try:
            reward, ended = found
            reward = float(reward)
        except (TypeError, ValueError) as error:
            raise EnvError(f"{self._where(i)}: step() gave {found!r}; accepted: (reward, ended).") from error
        if not isinstance(ended, bool | np.bool_) or not math.isfinite(reward):
            raise EnvError(f"{self._where(i)}: step() gave {found!r}; accepted: a finite number and True or False.")
        return reward, bool(ended)

    def _checked_ids(self, ids: Tensor) -> list[int]:
        """The ids as Python ints, each legal in its game."""
        if not self._legal:
            raise RuntimeError("The games have not begun; call reset() before step().")
        if ids.dtype != torch.int64 or tuple(ids.shape) != (self.num_envs,):
            raise EnvError(
                f"{self.name}: ids {tuple(ids.shape)} {ids.dtype}; accepted: ({self.num_envs},) torch.int64."
            )
        signed, chosen = ids.tolist(), to_unsigned(ids)  # sync: games in Python are played on the host
        for i, (value, legal) in enumerate(zip(signed, self._legal, strict=True)):
            if value not in legal:
                accepted = ", ".join(map(str, to_unsigned(torch.from_numpy(legal))))
                raise EnvError(f"{self._where(i)}: the id {chosen[i]} is not legal; accepted: {accepted}.")
        return chosen

    def _where(self, i: int) -> str:
        return f"{self.name}, game {i}, episode {self._episodes[i]}, step {self._steps[i]}"

    def _sets(self) -> ActionSets:
        return pack(self._legal, self.device)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)
