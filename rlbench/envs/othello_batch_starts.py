"""How episodes of many games of Othello start, and how an opponent in them replies.

A start depends on the episode and the game alone. Where it takes random plies it is made before it is needed, for all games that
have used theirs at once: the few games that end in a step would each time cost as many calls as all of them do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.envs.alpha_beta import action_values, first_of_largest, native_search
from rlbench.envs.othello import Boards, Othello, finished, legal_actions, legal_squares, play, play_square, start
from rlbench.envs.othello_batch import count, nth_square
from rlbench.random import Purpose, random_bits, to_below

DRAWS = 64  # of an episode: more than a game has moves of one player, or than an opening may have
LENGTH = DRAWS - 1  # the draw that says how long an opening is


def select(boards: Boards, games: Tensor) -> Boards:
    """The boards of some games (K,)."""
    return Boards(boards.mine.index_select(0, games), boards.theirs.index_select(0, games), boards.size)


def put(boards: Boards, games: Tensor, new: Boards) -> Boards:
    """The boards with those of some games (K,) exchanged, in place."""
    boards.mine.index_copy_(0, games, new.mine)
    boards.theirs.index_copy_(0, games, new.theirs)
    return boards


def random_ply(boards: Boards, bits: Tensor) -> Boards:
    """Each game's player places a disc on a random square by 32 bits (N,); one without any passes, a finished game too."""
    moves = legal_squares(*boards)
    return play_square(boards, nth_square(moves, (bits * count(moves)) >> 32))


class Replies:
    """The moves of a game's opponent, of any number of games at once."""

    def __init__(self, game: Othello, seed: int) -> None:
        self.random, self.seed = game.opponent == "random", seed
        self.depth = 1  # the most discs flipped is the largest lead one ply on
        if game.opponent is not None and game.opponent.startswith("alpha_beta_"):
            self.depth = int(game.opponent.removeprefix("alpha_beta_"))

    def __call__(self, boards: Boards, games: Tensor, episodes: Tensor, number: Tensor) -> Boards:
        """The boards after the opponent's move `number` (N,) of episodes (N,) of games (N,). A finished game stays as it is."""
        if self.random:
            return random_ply(boards, random_bits(self.seed, Purpose.OPPONENT, episodes * DRAWS + number, games))
        legal = legal_actions(boards)
        live = (legal.counts > 0).nonzero().squeeze(1)  # sync: nothing can be searched for a finished game
        if len(live) == len(games):
            return play(boards, self._best(boards, legal))
        ids = torch.zeros_like(games)
        offsets = torch.cat((legal.offsets.index_select(0, live), legal.offsets[-1:]))
        return play(boards, ids.index_copy_(0, live, self._best(select(boards, live), ActionSets(legal.ids, offsets))))

    def _best(self, boards: Boards, legal: ActionSets) -> Tensor:
        """The id (N,) of the first of the best actions by minimax on disc lead."""
        native = native_search() if self.depth > 1 and legal.ids.device.type == "cpu" else None
        if native is not None:
            return native(boards.mine, boards.theirs, legal.ids, legal.offsets, boards.size, self.depth)
        return first_of_largest(action_values(boards, legal, self.depth), legal)


class Starts:
    """The first positions of episodes, seen by the player to move, or by the agent where there is an opponent.

    Args:
        replies: the opponent, if there is one.
    """

    def __init__(self, game: Othello, num_envs: int, seed: int, device: torch.device, replies: Replies | None) -> None:
        self.game, self.seed, self.device, self.replies = game, seed, device, replies
        self.all_alike = not game.opening_plies and replies is None
        self._next = start(num_envs, game.size, device)
        self._used = torch.ones(num_envs, dtype=torch.bool, device=device)  # whether that of `_next` has been taken

    def first(self, games: Tensor) -> Boards:
        """The starts of episode 0 of all games (N,)."""
        self._used.fill_(True)
        return self._make(games, torch.zeros_like(games))

    def take(self, games: Tensor, episodes: Tensor) -> Boards:
        """The starts of games (K,), each in the episode that follows its last.

        Args:
            episodes: (N,) int64, of all games, those of `games` raised already.
        """
        if self.all_alike:
            return select(self._next, games)
        if bool(self._used.index_select(0, games).any()):  # sync: seldom as many calls as a step has
            stale = self._used.nonzero().squeeze(1)  # sync: how many
            upcoming = episodes.index_select(0, stale) + 1
            taken = torch.isin(stale, games)
            put(self._next, stale, self._make(stale, upcoming - taken.to(torch.int64)))
            self._used.fill_(False)
        self._used.index_fill_(0, games, True)
        return select(self._next, games)

    def _plies(self, games: Tensor, episodes: Tensor) -> Tensor:
        """How many random plies (K,) episodes (K,) of games (K,) begin with."""
        most, least = self.game.opening_plies, self.game.least_opening_plies
        least = most if least is None else least
        return least + to_below(
            random_bits(self.seed, Purpose.RESET, episodes * DRAWS + LENGTH, games), most - least + 1
        )

    def _make(self, games: Tensor, episodes: Tensor) -> Boards:
        """The starts of an episode (K,) each of games (K,)."""
        opened = start(len(games), self.game.size, self.device)
        if self.all_alike:
            return opened
        plies = self._plies(games, episodes)
        for ply in range(self.game.opening_plies):
            further = random_ply(opened, random_bits(self.seed, Purpose.RESET, episodes * DRAWS + ply, games))
            goes_on = ply < plies
            mine = torch.where(goes_on, further.mine, opened.mine)
            opened = Boards(mine, torch.where(goes_on, further.theirs, opened.theirs), opened.size)
        if self.game.opening_plies:
            over = finished(opened).nonzero().squeeze(1)  # sync: few or none
            put(opened, over, start(len(over), self.game.size, self.device))
        if self.replies is None:
            return opened
        second = ((episodes + games) % 2).nonzero().squeeze(1)  # sync: how many
        games, episodes, boards = games[second], episodes[second], select(opened, second)
        replied = self.replies(boards, games, episodes, torch.zeros_like(games))
        over = finished(replied).nonzero().squeeze(1)  # sync: few or none
        if len(over):
            again = start(len(over), self.game.size, self.device)
            put(replied, over, self.replies(again, games[over], episodes[over], torch.zeros_like(over)))
        return put(opened, second, replied)
