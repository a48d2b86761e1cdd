"""Matches of two players over many games at once, from random openings, each played twice with the sides changed.

Both halves of a match are the same games with the same openings; the policy has the first move behind the opening in one and
the second in the other. Players take turns in every game, so that in each half one player is asked about all games at once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.envs.games import Games, Player, Position
from rlbench.envs.one_by_one_games import OneByOneGames
from rlbench.envs.spaces import EnvError
from rlbench.progress import Progress
from rlbench.random import Purpose, random_bits, to_below

NORMAL_95 = 1.959963984540054  # the 97.5 % point of the normal distribution


@dataclass(frozen=True)
class Outcomes:
    """What became of some games, seen by the policy."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def win_share(self) -> float:
        """Wins over games; NaN of none."""
        return self.wins / self.games if self.games else math.nan

    @property
    def score(self) -> float:
        """As in a tournament: a draw is half a win. NaN of no games."""
        return (self.wins + self.draws / 2) / self.games if self.games else math.nan

    @property
    def win_interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of wins (Wilson, 1927)."""
        return wilson(self.wins, self.games)


@dataclass(frozen=True)
class MatchResult(Outcomes):
    """A match, seen by the policy.

    `by_colour["first"]` are the games in which it had the first move behind the opening, `by_colour["second"]` the others.
    """

    mean_lead: float | None  # discs of the policy less the opponent's at the end; None for a game without discs
    by_colour: dict[str, Outcomes]
    interrupted: bool = False  # only games that had ended are counted

    def summary(self) -> dict[str, Any]:
        """Plain Python values; NaN is None."""
        low, high = self.win_interval
        numbers = {"win_share": self.win_share, "win_low": low, "win_high": high, "score": self.score}
        return {
            **{"games": self.games, "wins": self.wins, "draws": self.draws, "losses": self.losses},
            **{name: None if math.isnan(value) else value for name, value in numbers.items()},
            "mean_lead": self.mean_lead,
            "by_colour": {side: dataclasses.asdict(part) for side, part in self.by_colour.items()},
            "interrupted": self.interrupted,
        }


def wilson(wins: int, games: int) -> tuple[float, float]:
    """The 95 % interval of a share, from `wins` of `games` (Wilson, 1927); all of it where there is no game."""
    if games == 0:
        return 0.0, 1.0
    share, z = wins / games, NORMAL_95
    middle = (share + z * z / (2 * games)) / (1 + z * z / games)
    half = z / (1 + z * z / games) * math.sqrt(share * (1 - share) / games + z * z / (4 * games * games))
    return max(0.0, middle - half), min(1.0, middle + half)


def play_match(
    game: Any,
    policy: Player,
    opponent: Player,
    num_games: int,
    seed: int,
    opening_plies: int | None = None,
    device: str | torch.device = "cpu",
    progress: bool | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> MatchResult:
    """Play `num_games` games of `policy` against `opponent`.

    Args:
        game: rules of a game for two, such as `Othello()`; an opponent and an opening of its own are left out.
        num_games: each opening is played twice; of an odd number the last is played once, with the policy to move first.
        seed: of the openings.
        opening_plies: plies drawn at random before the players take over; left out, `match_opening_plies` of the game, or 8.
            Where the game ends within them, a new one begins.
        device: where the games are played; on the CPU in native code where that can be.
        progress: False shows nothing; None shows a bar on a terminal and lines elsewhere.
        should_stop: asked after every ply; True ends the match with the games that have ended.

    Raises:
        EnvError: for a game that is not for two players who take turns, and for numbers that cannot be.
    """
    opening_plies = getattr(game, "match_opening_plies", 8) if opening_plies is None else opening_plies
    if num_games < 1 or opening_plies < 0:
        raise EnvError(f"num_games={num_games}, opening_plies={opening_plies}: accepted are 1 or more, and 0 or more.")
    rules = self_play_of(game)
    halves = {"first": (num_games + 1) // 2, "second": num_games // 2}
    players = {"first": (policy, opponent), "second": (opponent, policy)}
    parts, leads, interrupted = {}, [], False
    with Progress(num_games, f"match of {getattr(game, 'name', 'a game')}", "games", progress) as bar:
        for side, count in halves.items():
            sign = 1 if side == "first" else -1
            half = _Half(rules, count, seed, opening_plies, device)
            interrupted |= half.play(players[side], bar, should_stop)
            result, lead = sign * half.result[half.ended], sign * half.lead[half.ended]  # as the policy sees them
            parts[side] = Outcomes(*(int((result == outcome).sum()) for outcome in (1, 0, -1)))
            leads.append(lead)
    lead = np.concatenate(leads)
    mean_lead = float(lead.mean()) if len(lead) and not np.isnan(lead).any() else None
    total = [sum(getattr(part, name) for part in parts.values()) for name in ("wins", "draws", "losses")]
    return MatchResult(*total, mean_lead=mean_lead, by_colour=parts, interrupted=interrupted)


def added(results: Sequence[MatchResult]) -> MatchResult:
    """Several matches as one."""
    sides = {
        side: Outcomes(
            *(sum(getattr(result.by_colour[side], name) for result in results) for name in ("wins", "draws", "losses"))
        )
        for side in results[0].by_colour
    }
    total = [sum(getattr(part, name) for part in sides.values()) for name in ("wins", "draws", "losses")]
    leads = [(result.mean_lead, result.games) for result in results if result.mean_lead is not None]
    known = sum(games for _, games in leads)
    mean_lead = sum(lead * games for lead, games in leads) / known if known else None
    return MatchResult(*total, mean_lead=mean_lead, by_colour=sides, interrupted=any(r.interrupted for r in results))


def self_play_of(game: Any) -> Any:
    """The rules without an opponent and an opening of their own, paying the disc lead where they can."""
    if dataclasses.is_dataclass(game):
        plain = {"opponent": None, "opening_plies": 0, "least_opening_plies": None}
        if getattr(game, "reward", None) == "win":
            plain["reward"] = "discs"  # of the same sign
        names = {field.name for field in dataclasses.fields(game)}
        game = dataclasses.replace(game, **{name: value for name, value in plain.items() if name in names})
    if not game.alternating:
        raise EnvError(
            f"{getattr(game, 'name', game)} is not a game of two players who take turns: no match can be played."
        )
    return game


def make_games(game: Any, num_envs: int, seed: int, device: str | torch.device = "cpu") -> Games:
    """N games side by side, in the fastest form that the rules have on this device."""
    why_not = getattr(game, "why_not_native", None)
    if torch.device(device).type == "cpu" and why_not is not None and why_not() is None:
        return game.native(num_envs, seed)
    if hasattr(game, "batched"):
        return game.batched(num_envs, seed, device)
    return OneByOneGames(game.one, num_envs, seed, device, getattr(game, "name", ""))


class _Half:
    """The first episodes of N games; `result` (1, 0, -1) and `lead` are seen by who moves first behind the opening."""

    def __init__(self, rules: Any, num_games: int, seed: int, opening_plies: int, device: str | torch.device) -> None:
        self.rules, self.num_games, self.seed, self.opening_plies, self.device = (
            rules,
            num_games,
            seed,
            opening_plies,
            device,
        )
        self.ended = np.zeros(num_games, bool)
        self.result = np.zeros(num_games, np.int64)
        self.lead = np.full(num_games, np.nan)

    def play(self, players: tuple[Player, Player], bar: Progress, should_stop: Callable[[], bool] | None) -> bool:
        """Play all games to their ends. True: stopped before."""
        if not self.num_games:
            return False
        games = make_games(self.rules, self.num_games, self.seed, self.device)
        position = self._open(games)
        ply = 0
        while not self.ended.all():
            if should_stop is not None and should_stop():
                return True
            step = games.step(self._ids(position, players[ply % 2]))
            over = (
                step.terminated | step.truncated
            ).cpu().numpy() & ~self.ended  # sync: the match is over when all are
            if over.any():
                self._note(over, step.reward, 1 if ply % 2 == 0 else -1)
                self.ended |= over
                bar.advance(int(over.sum()))
            position, ply = Position(step.obs, step.legal), ply + 1
        return False

    def _open(self, games: Games) -> Position:
        """Random plies, the same in every match of this seed: ply p of game i takes the draw (p, i)."""
        position = games.reset()
        index = torch.arange(self.num_games, device=games.device)
        for ply in range(self.opening_plies):
            legal = position.legal
            k = to_below(random_bits(self.seed, Purpose.EVALUATION, ply, index), legal.counts)
            step = games.step(legal.ids[legal.offsets[:-1] + k])
            position = Position(step.obs, step.legal)
        return position

    def _ids(self, position: Position, player: Player) -> Tensor:
        """What the player chooses in the games that go on; any action in those that are over, whose next episodes run idle."""
        obs, legal = position
        if not self.ended.any():
            return player(obs, legal).to(obs.device)
        ids = legal.ids[legal.offsets[:-1]]
        going = torch.from_numpy(np.flatnonzero(~self.ended)).to(obs.device)
        return ids.index_copy(0, going, player(obs[going], legal.take(going)).to(obs.device))

    def _note(self, over: np.ndarray, reward: Tensor, sign: int) -> None:
        """Of games that have just ended by a move of the first (sign 1) or the second player (-1), who got the reward."""
        gained = sign * reward.double().cpu().numpy()[over]  # sync: once a ply in which games end
        self.result[over] = np.sign(gained)
        if getattr(self.rules, "reward", None) == "discs":
            self.lead[over] = np.rint(gained * self.rules.size**2)
