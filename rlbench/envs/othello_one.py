"""Reversi (Othello), one game at a time in plain Python ints: the simplest form, and what the faster ones are held to.

A board is two numbers, the squares of the player to move and those of the other; square (row, column) is bit 8 row + column
whatever the size. Discs are found square by square along the eight lines that leave the one on which a disc is placed. Nothing
here is shared with the engines of tensors and of C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from rlbench.random import Purpose, random_bits, to_below

if TYPE_CHECKING:
    from rlbench.envs.othello import Othello

Ray = tuple[int, ...]
# (mine, theirs, legal ids) -> one of the ids
Choose = Callable[[int, int, list[int]], int]
STEPS = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if down or right]
DRAWS = 64  # of an episode: more than a game has moves of one player, or than an opening may have
LENGTH = DRAWS - 1  # the draw that says how long an opening is


@cache
def rays_of(size: int) -> dict[int, tuple[Ray, ...]]:
    """From every square, in ascending order: the squares met in each direction, nearest first. A line of one flips nothing."""
    rays = {}
    for row in range(size):
        for col in range(size):
            lines = (ray(size, row, col, down, right) for down, right in STEPS)
            rays[1 << (8 * row + col)] = tuple(line for line in lines if len(line) > 1)
    return rays


def ray(size: int, row: int, col: int, down: int, right: int) -> Ray:
    squares = []
    while 0 <= (row := row + down) < size and 0 <= (col := col + right) < size:
        squares.append(1 << (8 * row + col))
    return tuple(squares)


def start_of(size: int) -> tuple[int, int]:
    """(mine, theirs) at the start, black to move: black has the square right of and above the middle, and its opposite."""
    low, high = size // 2 - 1, size // 2
    black = 1 << (8 * low + high) | 1 << (8 * high + low)
    white = 1 << (8 * low + low) | 1 << (8 * high + high)
    return black, white


def flipped(rays: tuple[Ray, ...], mine: int, theirs: int) -> int:
    """The discs that turn over: on each line, theirs without a gap up to one of mine."""
    flips = 0
    for line in rays:
        run = 0
        for square in line:
            if square & theirs:
                run |= square
                continue
            if square & mine:
                flips |= run
            break
    return flips


def moves(mine: int, theirs: int, size: int) -> list[int]:
    """Ids of the discs that may be placed, in ascending order of their squares: the disc and those that it flips."""
    taken = mine | theirs
    found = []
    for square, rays in rays_of(size).items():
        if not square & taken:
            flips = flipped(rays, mine, theirs)
            if flips:
                found.append(square | flips)
    return found


def legal_ids(mine: int, theirs: int, size: int) -> list[int]:
    """Ids of all legal actions: of discs placed, else [0], a pass, else [] where neither can place one: the game is over."""
    return moves(mine, theirs, size) or ([0] if moves(theirs, mine, size) else [])


def play(mine: int, theirs: int, action_id: int) -> tuple[int, int]:
    """(mine, theirs) after an action, seen by the other player, whose turn it is."""
    return theirs & ~action_id, mine | action_id


def planes(mine: int, theirs: int, size: int) -> list[float]:
    """The features: size² numbers for each player, 1 where the square has a disc of theirs, row by row."""
    return [float(bool(discs & square)) for discs in (mine, theirs) for square in rays_of(size)]


def lead_of(mine: int, theirs: int) -> int:
    return mine.bit_count() - theirs.bit_count()


def search(mine: int, theirs: int, size: int, depth: int, alpha: int, beta: int) -> int:
    """The disc lead that the player to move can be sure of after `depth` plies, by alpha-beta (Knuth and Moore, 1975).

    Exact between alpha and beta; at most alpha, or at least beta, where it lies outside. A pass is a ply; a finished game
    counts as it stands.
    """
    ids = legal_ids(mine, theirs, size) if depth else []
    if not ids:
        return lead_of(mine, theirs)
    for action_id in ids:
        value = -search(*play(mine, theirs, action_id), size, depth - 1, -beta, -alpha)
        if value >= beta:
            return value
        alpha = max(alpha, value)
    return alpha


def alpha_beta_id(mine: int, theirs: int, ids: Sequence[int], size: int, depth: int) -> int:
    """The first of the best actions by minimax on disc lead, `depth` plies deep, the action itself one of them."""
    best, best_id = -65, ids[0]  # below any lead
    for action_id in ids:
        value = -search(*play(mine, theirs, action_id), size, depth - 1, -65, -best)
        if value > best:
            best, best_id = value, action_id
    return best_id


def greedy_id(mine: int, theirs: int, ids: Sequence[int]) -> int:
    """The first of the actions that flip the most discs."""
    return max(ids, key=int.bit_count)


def opponent_of(name: str, size: int) -> Choose:
    """A named opponent that draws nothing."""
    if name == "greedy":
        return greedy_id
    return partial(alpha_beta_id, size=size, depth=int(name.removeprefix("alpha_beta_")))


class OneOthello:
    """One game of `Othello`'s rules (a `OneGame`): self-play, or an agent against the rules' opponent.

    Args:
        game: the rules: size, reward, opening_plies, opponent.
        choose: an opponent of your own, instead of the rules' one.
    """

    def __init__(self, game: Othello, choose: Choose | None = None) -> None:
        self.size, self.reward, self.opening_plies = game.size, game.reward, game.opening_plies
        least = getattr(game, "least_opening_plies", None)  # rules of somebody's own may have no such setting
        self.least = game.opening_plies if least is None else least
        self.obs_size = 2 * self.size**2
        self.alternating = choose is None and game.opponent is None
        if choose is None and not self.alternating:
            choose = self._random if game.opponent == "random" else opponent_of(game.opponent, self.size)
        self._choose = choose
        self.reset(0, 0, 0)

    def reset(self, seed: int, episode: int, index: int) -> None:
        """Start episode `episode` of game `index`: the random opening, then the opponent's move if it has the first."""
        self._draws = seed, episode, index
        self._replies = 0
        bits = random_bits(seed, Purpose.RESET, episode * DRAWS + LENGTH, index)
        self._open(self.least + to_below(bits, self.opening_plies - self.least + 1))
        if not self.alternating and (episode + index) % 2:
            self._reply()
            if not self.ids:  # over before the agent's first move
                self._replies = 0
                self._open(0)
                self._reply()

    def _open(self, plies: int) -> None:
        self.mine, self.theirs = start_of(self.size)
        self.plies = 0  # since the start; black has the turn where it is even
        self.ids = legal_ids(self.mine, self.theirs, self.size)
        for ply in range(plies):
            self._play(self._drawn(Purpose.RESET, ply, self.ids))
            if not self.ids:
                self._open(0)  # an opening that ends the game is none
                return

    def _drawn(self, purpose: Purpose, number: int, ids: list[int]) -> int:
        seed, episode, index = self._draws
        return ids[to_below(random_bits(seed, purpose, episode * DRAWS + number, index), len(ids))]

    def _random(self, mine: int, theirs: int, ids: list[int]) -> int:
        return self._drawn(Purpose.OPPONENT, self._replies, ids)

    def _play(self, action_id: int) -> None:
        self.mine, self.theirs = play(self.mine, self.theirs, action_id)
        self.plies += 1
        self.ids = legal_ids(self.mine, self.theirs, self.size)

    def _reply(self) -> None:
        self._play(self._choose(self.mine, self.theirs, self.ids))
        self._replies += 1

    def features(self) -> list[float]:
        """A plane of the discs of the player to move (of the agent, against an opponent), then one of the other's."""
        return planes(self.mine, self.theirs, self.size)

    def legal(self) -> list[int]:
        return list(self.ids)

    def step(self, action_id: int) -> tuple[float, bool]:
        """Take a legal action; against an opponent, its reply follows. The reward is the mover's, or the agent's.

        Raises:
            ValueError: for an id that is not legal here.
        """
        if action_id not in self.ids:
            raise ValueError(f"the id {action_id!r} is not legal here; accepted: {self.ids}.")
        self._play(action_id)
        if not self.alternating:
            if self.ids:
                self._reply()
            else:
                self.mine, self.theirs = self.theirs, self.mine  # the agent's view
        over = not self.ids
        if not over:
            return 0.0, False
        lead = lead_of(self.mine, self.theirs)
        return self._reward(-lead if self.alternating else lead), True

    def _reward(self, lead: int) -> float:
        return lead / self.size**2 if self.reward == "discs" else float((lead > 0) - (lead < 0))
