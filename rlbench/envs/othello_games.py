"""N games of Othello side by side, stepped by tensors on any device: the executor `batched` of `Othello`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.envs.games import GameStep, Position
from rlbench.envs.othello import Boards, Othello, features, lead, legal_squares, play, stuck
from rlbench.envs.othello_batch_ids import packed_ids, with_passes
from rlbench.envs.othello_batch_starts import Replies, Starts, put, select
from rlbench.envs.spaces import EnvError


class BatchedOthello:
    """N games (the protocol `Games`): self-play, or an agent against the opponent that the rules name.

    The host reads two or three small numbers a step: which games are stuck or over, and how many legal actions there are.

    Args:
        game: the rules.
        num_envs: N, 1 or more.
        seed: of openings and of a random opponent.

    Raises:
        EnvError: for a number of games that is none.
    """

    def __init__(self, game: Othello, num_envs: int, seed: int, device: Any = "cpu") -> None:
        if type(num_envs) is not int or num_envs < 1:
            raise EnvError(f"{game.name}: num_envs={num_envs!r} is refused; accepted is a whole number from 1 on.")
        self.game, self.num_envs, self.seed, self.device = game, num_envs, seed, torch.device(device)
        self.name, self.obs_size, self.alternating = game.name, game.obs_size, game.alternating
        self._replies = None if game.opponent is None else Replies(game, seed)
        self._starts = Starts(game, num_envs, seed, self.device, self._replies)
        self._games = torch.arange(num_envs, device=self.device)
        self._boards: Boards | None = None

    def reset(self) -> Position:
        """All games at the start of their first episode."""
        self._boards = self._starts.first(self._games)
        self._episodes = torch.zeros_like(self._games)
        self._numbers = self._moved(self._episodes, self._games)
        return Position(features(self._boards), self._legal(legal_squares(*self._boards)))

    def step(self, ids: Tensor) -> GameStep:
        """Take the legal action ids (N,) int64, one a game. That they are legal is not checked (see `othello.check_play`).

        Raises:
            EnvError: for ids of another shape or kind.
            RuntimeError: before `reset`.
        """
        boards = play(self._begun(ids), ids)
        if self._replies is not None:
            boards = self._replies(boards, self._games, self._episodes, self._numbers)
            self._numbers += 1
        moves = legal_squares(*boards)
        games, over = stuck(boards, moves)
        ended = games[over]  # sync: how many
        next_obs, reward = features(boards), torch.zeros(self.num_envs, device=self.device)
        obs, terminated = next_obs.clone(), torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        if len(ended):
            reward.index_copy_(0, ended, self._reward(lead(select(boards, ended))))
            terminated.index_fill_(0, ended, True)
            begun = self._start_anew(ended)
            put(boards, ended, begun)
            moves.index_copy_(0, ended, legal_squares(*begun))
            obs.index_copy_(0, ended, features(begun))
        self._boards = boards
        return GameStep(obs, self._legal(moves), reward, terminated, torch.zeros_like(terminated), next_obs)

    def _begun(self, ids: Tensor) -> Boards:
        if self._boards is None:
            raise RuntimeError("The games have not begun; call reset() before step().")
        if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.shape != (self.num_envs,):
            found = f"{tuple(ids.shape)} {ids.dtype}" if isinstance(ids, Tensor) else type(ids).__name__
            raise EnvError(f"{self.name}: ids {found} are refused; accepted: ({self.num_envs},) torch.int64.")
        return self._boards

    def _start_anew(self, ended: Tensor) -> Boards:
        """The next episode of games (K,)."""
        episodes = self._episodes.index_select(0, ended) + 1
        self._episodes.index_copy_(0, ended, episodes)
        self._numbers.index_copy_(0, ended, self._moved(episodes, ended))
        return self._starts.take(ended, self._episodes)

    def _moved(self, episodes: Tensor, games: Tensor) -> Tensor:
        """How many moves the opponent has made at the start: one in every other episode."""
        return torch.zeros_like(games) if self.alternating else (episodes + games) % 2

    def _legal(self, moves: Tensor) -> ActionSets:
        mine, theirs, size = self._boards
        return packed_ids(mine, theirs, with_passes(mine, moves), size)

    def _reward(self, leads: Tensor) -> Tensor:
        """By the lead of who would move next: the agent, or else the other of the two players."""
        leads = (-leads if self.alternating else leads).to(torch.float32)
        return leads / self.game.size**2 if self.game.reward == "discs" else leads.sign()
