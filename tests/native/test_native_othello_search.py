"""Alpha-beta in C, held to plain minimax in Python ints: the first of the best, whatever is pruned."""

import random

import pytest
import torch

from rlbench.actions import ActionError, pack, to_unsigned
from rlbench.envs.othello_one import legal_ids, moves, play, start_of
from rlbench.native.othello import alpha_beta_ids, why_not_native

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason="no C compiler")


def minimax(mine, theirs, size, depth):
    """The best lead, by looking at everything."""
    ids = legal_ids(mine, theirs, size) if depth else []
    if not ids:
        return mine.bit_count() - theirs.bit_count()
    return max(-minimax(*play(mine, theirs, action), size, depth - 1) for action in ids)


def positions(size, number, seed, plies):
    """Positions from random games, some before their last moves, with their legal ids in a random order."""
    draw, found = random.Random(seed), []
    while len(found) < number:
        board, left = start_of(size), draw.randrange(*plies)
        while (ids := legal_ids(*board, size)) and left:
            board, left = play(*board, draw.choice(ids)), left - 1
        if ids:
            found.append((*board, draw.sample(ids, len(ids))))
    return found


def signed(numbers):
    return pack([numbers]).ids


@pytest.mark.parametrize(
    ("size", "depth", "number", "plies"),
    [
        *((4, depth, 40, (0, 13)) for depth in (1, 2, 3, 4, 9)),
        (6, 1, 20, (0, 33)),
        (6, 3, 12, (0, 33)),
        (8, 1, 20, (0, 61)),
        (8, 2, 12, (0, 61)),
        (8, 4, 8, (52, 61)),
    ],
)
def test_the_search_finds_the_first_of_the_best(size, depth, number, plies):
    if depth == 9:
        plies = (4, 13)
    found = positions(size, number, 10 * size + depth, plies)
    mine, theirs, lists = zip(*found, strict=True)
    legal = pack(lists)
    best = alpha_beta_ids(signed(mine), signed(theirs), *legal, size, depth)
    values = [[-minimax(*play(m, t, action), size, depth - 1) for action in ids] for m, t, ids in found]
    assert to_unsigned(best) == [ids[v.index(max(v))] for ids, v in zip(lists, values, strict=True)]
    assert depth > 2 or any(v.count(max(v)) > 1 for v in values)


def test_a_pass_is_a_ply_and_the_only_choice():
    mine, theirs, _ = next((m, t, i) for m, t, i in positions(4, 400, 1, (3, 13)) if i == [0])
    assert to_unsigned(alpha_beta_ids(signed([mine]), signed([theirs]), *pack([[0]]), 4, 3)) == [0]


def test_perfect_play_on_4x4_is_won_by_the_second_player_11_to_3():
    board, turn = start_of(4), 0
    while ids := legal_ids(*board, 4):
        mine, theirs = board
        best = alpha_beta_ids(signed([mine]), signed([theirs]), *pack([ids]), 4, 14)
        board, turn = play(*board, to_unsigned(best)[0]), turn + 1
    black, white = board if turn % 2 == 0 else board[::-1]
    assert (black.bit_count(), white.bit_count()) == (3, 11)


def test_the_search_at_the_corner_of_the_board():
    mine, theirs = 1 << 61, 1 << 62
    corner = 1 << 63 | theirs
    assert moves(mine, theirs, 8) == [corner]
    for depth in (1, 4):
        assert to_unsigned(alpha_beta_ids(signed([mine]), signed([theirs]), *pack([[corner]]), 8, depth)) == [corner]


def test_no_positions_are_no_trouble():
    nothing = torch.empty(0, dtype=torch.int64)
    assert alpha_beta_ids(nothing, nothing, *pack([]), 8, 2).shape == (0,)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"depth": 0}, "depth=0 is refused"),
        ({"depth": 2.0}, "depth=2.0 is refused"),
        ({"size": 5}, "size=5 is refused"),
        ({"mine": torch.zeros(2)}, "int64 on the CPU"),
        ({"mine": torch.zeros(1, dtype=torch.int64)}, "1 and 2 boards"),
        ({"offsets": torch.tensor([0, 4, 9])}, "offsets run from 0 to 9"),
        ({"offsets": torch.tensor([0, 8, 8])}, "state 1 has no legal action"),
        ({"ids": torch.arange(8)}, "position 0, discs .* its ids 0, 1, 2, 3 are not all legal on a 4x4 board"),
        ({"theirs": torch.tensor([-1, -1])}, "position 0"),
    ],
)
def test_the_search_refuses_what_is_no_position(change, text):
    mine, theirs = start_of(4)
    legal = pack([legal_ids(mine, theirs, 4)] * 2)
    given = {"mine": signed([mine] * 2), "theirs": signed([theirs] * 2), "ids": legal.ids, "offsets": legal.offsets}
    given |= {"size": 4, "depth": 2}
    assert len(alpha_beta_ids(**given)) == 2
    with pytest.raises(ActionError, match=text):
        alpha_beta_ids(**given | change)
