"""Matches: openings twice with the sides changed, results worked out game by game, intervals, and ways to stop."""

import dataclasses
import math
from dataclasses import dataclass
from itertools import count

import pytest
import torch

from rlbench.actions import unpack
from rlbench.envs.matches import MatchResult, Outcomes, added, make_games, play_match, wilson
from rlbench.envs.one_by_one_games import OneByOneGames
from rlbench.envs.othello import Othello
from rlbench.envs.othello_one import OneOthello, greedy_id, legal_ids, play, start_of
from rlbench.envs.players import greedy, opponent_named, random_player
from rlbench.envs.spaces import EnvError
from rlbench.random import Purpose, random_bits, to_below


@dataclass(frozen=True)
class OnlyOne:
    """Rules of Othello without any form but the plain one."""

    size: int = 4
    reward: str = "win"
    opening_plies: int = 3
    opponent: str | None = "greedy"

    @property
    def alternating(self):
        return self.opponent is None

    def one(self):
        return OneOthello(self)


def last(obs, legal):
    return legal.ids[legal.offsets[1:] - 1]


def by_hand(size, num_games, seed, plies, choose_policy, choose_opponent):
    """[(first or second, lead of the policy)] of each game, played one at a time."""
    found = []
    for side, games in (("first", (num_games + 1) // 2), ("second", num_games // 2)):
        for i in range(games):
            boards, opening = start_of(size), 0
            while opening < plies:
                ids = legal_ids(*boards, size)
                k = to_below(random_bits(seed, Purpose.EVALUATION, opening, i), len(ids))
                boards = play(*boards, ids[k])
                opening += 1
                if not legal_ids(*boards, size):
                    boards = start_of(size)
            policys_turn = side == "first"
            while ids := legal_ids(*boards, size):
                choose = choose_policy if policys_turn else choose_opponent
                boards = play(*boards, choose(*boards, ids))
                policys_turn = not policys_turn
            mine, theirs = boards if policys_turn else boards[::-1]
            found.append((side, mine.bit_count() - theirs.bit_count()))
    return found


def outcomes(leads):
    return Outcomes(sum(v > 0 for v in leads), sum(v == 0 for v in leads), sum(v < 0 for v in leads))


@pytest.mark.parametrize(
    ("rules", "games", "plies"),
    [
        (OnlyOne(4), 21, 4),
        (OnlyOne(4), 20, 12),  # openings in which games end
        (OnlyOne(6), 8, 0),
        (Othello(4, opponent="random", opening_plies=2), 40, 5),
        (Othello(6, reward="discs"), 30, 8),
        (Othello(8), 21, 7),
    ],
)
def test_results_are_those_of_games_played_one_at_a_time(rules, games, plies):
    want = by_hand(rules.size, games, 5, plies, greedy_id, lambda mine, theirs, ids: ids[-1])
    result = play_match(rules, greedy, last, games, seed=5, opening_plies=plies, progress=False)
    leads = [lead for _, lead in want]
    assert (result.wins, result.draws, result.losses) == dataclasses.astuple(outcomes(leads))
    assert result.by_colour == {
        side: outcomes([lead for where, lead in want if where == side]) for side in ("first", "second")
    }
    assert result.mean_lead == pytest.approx(sum(leads) / games)
    assert result.games == games
    assert not result.interrupted


@pytest.mark.parametrize("form", ["batched", "native", "one"])
def test_all_forms_of_the_games_give_the_same_match(form, monkeypatch):
    rules = Othello(6)
    if form == "native" and rules.why_not_native():
        pytest.skip(rules.why_not_native())
    makers = {
        "batched": lambda game, n, seed, device: game.batched(n, seed, device),
        "native": lambda game, n, seed, device: game.native(n, seed),
        "one": lambda game, n, seed, device: OneByOneGames(game.one, n, seed, device),
    }
    want = play_match(rules, greedy, random_player(1), 30, seed=2, progress=False)
    monkeypatch.setattr("rlbench.envs.matches.make_games", makers[form])
    assert play_match(rules, greedy, random_player(1), 30, seed=2, progress=False) == want


def test_the_fastest_form_is_made():
    rules = Othello(4)
    made = make_games(rules, 3, 1)
    assert type(made) is type(rules.batched(3, 1, "cpu") if rules.why_not_native() else rules.native(3, 1))
    assert type(make_games(OnlyOne(), 3, 1)) is OneByOneGames


def test_both_sides_of_a_match_see_the_same_openings():
    seen = {"first": [], "second": []}

    def spy(side):
        def player(obs, legal):
            seen[side].append(obs.clone())
            return last(obs, legal)

        return player

    play_match(Othello(8), spy("first"), spy("second"), 20, seed=3, progress=False)
    # The first half begins with the policy, the second with the opponent: both from the same ten openings.
    assert torch.equal(
        seen["first"][0], next(o for o in seen["second"] if len(o) == 10 and o.sum() == seen["first"][0].sum())
    )
    assert len({tuple(row) for row in seen["first"][0].tolist()}) > 5


def test_games_that_are_over_are_not_asked_about():
    sizes = []

    def player(obs, legal):
        assert len(obs) == len(legal.offsets) - 1
        assert all(unpack(legal))
        sizes.append(len(obs))
        return last(obs, legal)

    play_match(Othello(4), player, player, 30, seed=1, opening_plies=5, progress=False)
    assert min(sizes) < 15
    assert max(sizes) == 15


def test_another_seed_gives_other_openings():
    results = {play_match(Othello(8), greedy, last, 40, seed=seed, progress=False).mean_lead for seed in range(3)}
    assert len(results) > 1


def test_greedy_beats_random_and_looking_ahead_beats_greedy():
    game = Othello(8)
    result = play_match(game, greedy, random_player(1), 200, seed=1, progress=False)
    assert result.win_share > 0.5
    assert result.mean_lead > 0
    ahead = play_match(game, opponent_named("alpha_beta_3", 1), greedy, 100, seed=1, progress=False)
    assert ahead.win_share > 0.6


def test_a_match_that_is_stopped_counts_what_has_ended():
    asked = count()
    result = play_match(
        Othello(4), last, last, 40, seed=1, opening_plies=0, progress=False, should_stop=lambda: next(asked) >= 8
    )
    assert result.interrupted
    assert result.games < 40
    at_once = play_match(Othello(4), last, last, 4, seed=1, progress=False, should_stop=lambda: True)
    assert at_once.games == 0
    assert at_once.mean_lead is None
    assert at_once.summary()["win_share"] is None


def test_one_game():
    result = play_match(Othello(4), last, greedy, 1, seed=1, progress=False)
    assert result.games == result.by_colour["first"].games == 1
    assert math.isnan(result.by_colour["second"].score)


@pytest.mark.parametrize(
    ("wins", "games", "low", "high"),
    # of Wilson's formula by hand: (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), z = 1.959964
    [(0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0), (5, 10, 0.236593, 0.763407), (980, 1000, 0.969310, 0.987016)],
)
def test_wilson(wins, games, low, high):
    assert wilson(wins, games) == pytest.approx((low, high), abs=2e-6)


def test_wilson_of_nothing_and_the_numbers_of_a_result():
    assert wilson(0, 0) == (0.0, 1.0)
    result = MatchResult(6, 2, 2, mean_lead=1.5, by_colour={"first": Outcomes(3, 1, 1), "second": Outcomes(3, 1, 1)})
    assert (result.games, result.win_share, result.score) == (10, 0.6, 0.7)
    assert result.win_interval == wilson(6, 10)
    assert result.summary()["by_colour"]["second"] == {"wins": 3, "draws": 1, "losses": 1}


def test_refusals():
    @dataclass(frozen=True)
    class Alone(OnlyOne):
        name: str = "Alone"
        alternating = False

    with pytest.raises(EnvError, match="Alone is not a game of two players who take turns"):
        play_match(Alone(), greedy, greedy, 2, seed=1)
    with pytest.raises(EnvError, match="num_games=0, opening_plies=2"):
        play_match(Othello(4), greedy, greedy, 0, seed=1)


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setattr("rlbench.progress.LINE_EVERY_S", -1.0)
    play_match(OnlyOne(), greedy, last, 6, seed=1)
    assert "games (100 %)" in capsys.readouterr().err


def test_matches_added_up_by_hand():
    def match(first, second, lead):
        parts = {"first": Outcomes(*first), "second": Outcomes(*second)}
        total = [a + b for a, b in zip(first, second, strict=True)]
        return MatchResult(*total, mean_lead=lead, by_colour=parts)

    both = added([match((1, 0, 1), (2, 0, 0), 3.0), match((0, 1, 0), (0, 0, 1), -6.0)])
    assert (both.wins, both.draws, both.losses, both.games) == (3, 1, 2, 6)
    assert both.by_colour == {"first": Outcomes(1, 1, 1), "second": Outcomes(2, 0, 1)}
    assert both.mean_lead == 0.0 and not both.interrupted  # (4 * 3 - 2 * 6) / 6
    assert added([match((1, 0, 0), (0, 0, 1), None)]).mean_lead is None
