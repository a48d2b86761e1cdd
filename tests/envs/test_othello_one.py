"""The plain-Python game: counts of positions, a game played by hand, openings, opponents and rewards."""

from itertools import pairwise
from types import SimpleNamespace

import pytest

from rlbench.envs.games import OneGame
from rlbench.envs.othello_one import (
    OneOthello,
    alpha_beta_id,
    greedy_id,
    lead_of,
    legal_ids,
    play,
    rays_of,
    search,
    start_of,
)
from rlbench.random import Purpose, random_bits, to_below


def rules(size=8, reward="win", opening_plies=0, opponent=None):
    return SimpleNamespace(
        size=size, reward=reward, opening_plies=opening_plies, opponent=opponent, least_opening_plies=None
    )


def perft(mine, theirs, size, depth):
    if depth == 0:
        return 1
    return sum(perft(*play(mine, theirs, action), size, depth - 1) for action in legal_ids(mine, theirs, size))


@pytest.mark.parametrize(
    ("size", "counts"), [(8, [4, 12, 56, 244, 1396, 8200]), (4, [4, 12, 44, 128, 424, 1256, 3624])]
)
def test_perft(size, counts):
    assert [perft(*start_of(size), size, depth) for depth in range(1, len(counts) + 1)] == counts


def test_the_first_moves_are_those_of_the_board():
    black, white = start_of(8)
    # f5 and three more by symmetry: (2, 3), (3, 2), (4, 5), (5, 4), each with the one disc that it flips
    want = [(2, 3, 3, 3), (3, 2, 3, 3), (4, 5, 4, 4), (5, 4, 4, 4)]
    assert legal_ids(black, white, 8) == [1 << (8 * r + c) | 1 << (8 * fr + fc) for r, c, fr, fc in want]
    assert (black.bit_count(), white.bit_count()) == (2, 2)


def board(*rows):
    """Bits of (x, o) from rows such as '.xo.'."""
    bits = dict.fromkeys("xo", 0)
    for r, row in enumerate(rows):
        for c, disc in enumerate(row):
            if disc != ".":
                bits[disc] |= 1 << (8 * r + c)
    return bits["x"], bits["o"]


def test_a_line_ends_at_the_edge_of_the_board():
    mine, theirs = board("......xo", *["........"] * 7)
    # bit 8, the square (1, 0), lies behind theirs in the order of bits, and on no line with it
    assert legal_ids(mine, theirs, 8) == [0]
    assert legal_ids(theirs, mine, 8) == [1 << 5 | 1 << 6]


def test_all_eight_directions_at_once_with_bit_63():
    mine, theirs = board("x..x..x.", ".o.o.o..", "..ooo...", "xoo.oooo", "..ooo...", ".o.o.o..", "x..o..o.", "...x...x")
    (action,) = [i for i in legal_ids(mine, theirs, 8) if i & 1 << 27]
    east = sum(1 << (24 + c) for c in (4, 5, 6, 7))
    assert action & east == 0  # theirs up to the edge: no end
    north_west, north, north_east = 1 << 18 | 1 << 9, 1 << 19 | 1 << 11, 1 << 20 | 1 << 13
    south_west, south, south_east = 1 << 34 | 1 << 41, 1 << 35 | 1 << 43 | 1 << 51, 1 << 36 | 1 << 45 | 1 << 54
    west = 1 << 26 | 1 << 25
    assert action == 1 << 27 | north_west | north | north_east | south_west | south | south_east | west
    corner = board(*["........"] * 5, ".....x..", "......o.", "........")
    assert legal_ids(*corner, 8) == [1 << 63 | 1 << 54]


def test_a_pass_is_legal_only_alone_and_a_full_board_is_over():
    mine, theirs = board("xo..", "....", "....", "....")
    assert legal_ids(mine, theirs, 4) == [1 << 2 | 1 << 1]
    assert legal_ids(theirs, mine, 4) == [0]
    assert play(theirs, mine, 0) == (mine, theirs)
    assert legal_ids(*board("xxxx", "....", "....", "...."), 4) == []
    assert legal_ids(*board(*["xxxx"] * 3, "oooo"), 4) == []


def test_rays_of_a_corner_and_of_a_small_board():
    assert rays_of(8)[1 << 63][0][0] == 1 << 54
    assert sorted(map(len, rays_of(4)[1])) == [3, 3, 3]
    assert list(rays_of(6)) == sorted(1 << (8 * r + c) for r in range(6) for c in range(6))


def minimax(mine, theirs, size, depth):
    """Lead of the player to move, without pruning, written from the definition."""
    ids = legal_ids(mine, theirs, size)
    if depth == 0 or not ids:
        return lead_of(mine, theirs)
    return max(-minimax(*play(mine, theirs, action), size, depth - 1) for action in ids)


def first_best(mine, theirs, size, depth):
    ids = legal_ids(mine, theirs, size)
    values = [-minimax(*play(mine, theirs, action), size, depth - 1) for action in ids]
    return ids[values.index(max(values))]


def some_positions(size, games, every):
    for index in range(games):
        game = OneOthello(rules(size))
        game.reset(7, 0, index)
        over, ply = False, 0
        while not over:
            if ply % every == index % every:
                yield game.mine, game.theirs
            action = game.ids[to_below(random_bits(3, Purpose.ACTION, ply, index), len(game.ids))]
            _, over = game.step(action)
            ply += 1


@pytest.mark.parametrize(("size", "depth", "every"), [(4, 4, 1), (6, 3, 3), (8, 1, 3), (8, 2, 5), (8, 3, 11)])
def test_alpha_beta_is_minimax_with_the_first_of_equals(size, depth, every):
    for mine, theirs in some_positions(size, 4, every):
        ids = legal_ids(mine, theirs, size)
        assert alpha_beta_id(mine, theirs, ids, size, depth) == first_best(mine, theirs, size, depth)


def test_a_full_search_of_4x4_gives_the_known_result():
    assert search(*start_of(4), 4, 20, -65, 65) == -8  # the second player wins, 11 to 3


def test_depth_one_is_greedy():
    for mine, theirs in some_positions(8, 3, 1):
        ids = legal_ids(mine, theirs, 8)
        assert alpha_beta_id(mine, theirs, ids, 8, 1) == greedy_id(mine, theirs, ids)


def test_it_is_a_game_and_features_are_the_movers():
    game = OneOthello(rules(4))
    assert isinstance(game, OneGame)
    assert game.obs_size == 32
    assert game.alternating
    game.reset(1, 0, 0)
    black = [0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    white = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert game.features() == black + white
    assert game.step(1 << 1 | 1 << 9) == (0.0, False)  # black takes (0, 1) and flips (1, 1)
    assert game.features() == [0] * 10 + [1] + [0] * 5 + [0, 1, 0, 0, 0, 1, 1, 0, 0, 1] + [0] * 6


def test_an_action_that_is_not_legal_is_named():
    game = OneOthello(rules())
    with pytest.raises(ValueError, match=r"the id 5 is not legal here; accepted: \[134742016"):
        game.step(5)


@pytest.mark.parametrize("reward", ["win", "discs"])
@pytest.mark.parametrize("size", [4, 6])
def test_rewards_of_self_play_are_the_last_movers(size, reward):
    signs = set()
    for index in range(30):
        game = OneOthello(rules(size, reward))
        game.reset(1, 0, index)
        colours, colour, rewards, over = list(start_of(size)), 0, [], False  # black's and white's discs
        while not over:
            action = game.ids[to_below(random_bits(5, Purpose.ACTION, len(rewards), index), len(game.ids))]
            colours[colour] |= action
            colours[1 - colour] &= ~action
            gained, over = game.step(action)
            rewards.append(gained)
            colour = 1 - colour
        mover = 1 - colour
        lead = colours[mover].bit_count() - colours[1 - mover].bit_count()
        want = lead / size**2 if reward == "discs" else (lead > 0) - (lead < 0)
        assert rewards[-1] == want
        assert not any(rewards[:-1])
        assert game.legal() == []
        signs.add((lead > 0) - (lead < 0))
    assert {1, -1} <= signs


def test_openings_are_the_draws_of_their_episode_and_game():
    for seed, episode, index in [(1, 0, 0), (1, 3, 2), (9, 0, 5)]:
        mine, theirs = start_of(8)
        for ply in range(6):
            ids = legal_ids(mine, theirs, 8)
            k = to_below(random_bits(seed, Purpose.RESET, episode * 64 + ply, index), len(ids))
            mine, theirs = play(mine, theirs, ids[k])
        game = OneOthello(rules(opening_plies=6))
        game.reset(seed, episode, index)
        assert (game.mine, game.theirs, game.plies) == (mine, theirs, 6)


def test_an_opening_that_ends_the_game_gives_the_start_position():
    game, seen = OneOthello(rules(4, opening_plies=11)), set()
    for index in range(40):
        game.reset(2, 0, index)
        assert game.ids
        seen.add(game.plies)
    assert seen == {0, 11}


@pytest.mark.parametrize("opponent", ["random", "greedy", "alpha_beta_2"])
def test_the_opponent_moves_first_in_every_other_episode_and_replies_once(opponent):
    for episode, index in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)]:
        game = OneOthello(rules(6, opening_plies=2, opponent=opponent))
        game.reset(4, episode, index)
        assert not game.alternating
        first = (episode + index) % 2
        assert game.plies == 2 + first
        over, steps, plies = False, 0, [game.plies]
        while not over:
            gained, over = game.step(game.legal()[0])
            plies.append(game.plies)
            steps += 1
        assert all(b - a == 2 for a, b in pairwise(plies[:-1]))
        lead = game.features()[:36].count(1.0) - game.features()[36:].count(1.0)  # the agent's view, at the end, too
        assert gained == (lead > 0) - (lead < 0)


def test_a_random_opponent_takes_its_own_draws():
    seed, episode, index = 11, 2, 1
    game = OneOthello(rules(8, opponent="random"))
    game.reset(seed, episode, index)
    mine, theirs, over, n = *start_of(8), False, 0
    while not over:
        ids = legal_ids(mine, theirs, 8)  # the opponent's, which moves first as 2 + 1 is odd
        if not ids:
            break
        mine, theirs = play(
            mine, theirs, ids[to_below(random_bits(seed, Purpose.OPPONENT, episode * 64 + n, index), len(ids))]
        )
        n += 1
        assert (game.mine, game.theirs) == (mine, theirs) or over
        if not legal_ids(mine, theirs, 8):
            break
        action = game.legal()[-1]
        mine, theirs = play(mine, theirs, action)
        _, over = game.step(action)
    assert n > 20


def test_an_opponent_that_ends_the_game_at_once_gives_the_start_position():
    ended = 0
    for index in range(1, 400, 2):  # the opponent is first
        without = OneOthello(rules(4, opening_plies=10))
        without.reset(3, 0, index)
        ids = without.legal()
        if without.plies != 10:
            continue
        k = to_below(random_bits(3, Purpose.OPPONENT, 0, index), len(ids))
        ends = not legal_ids(*play(without.mine, without.theirs, ids[k]), 4)
        game = OneOthello(rules(4, opening_plies=10, opponent="random"))
        game.reset(3, 0, index)
        assert game.plies == (1 if ends else 11)
        assert game.legal()
        ended += ends
    assert ended


def test_an_opponent_of_ones_own_is_asked():
    game = OneOthello(rules(4), choose=lambda mine, theirs, ids: ids[-1])
    game.reset(1, 0, 1)
    assert not game.alternating
    assert game.theirs == play(*start_of(4), legal_ids(*start_of(4), 4)[-1])[1]
