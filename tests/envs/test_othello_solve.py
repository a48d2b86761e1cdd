"""Whole trees of Othello by the batched engine: how many lines of play there are, and who wins on 4x4."""

import pytest
import torch

from rlbench.envs.othello import Boards, count, finished, lead, legal_actions, play, start


def after_all(boards):
    """All positions one ply on."""
    legal = legal_actions(boards)
    states = legal.states()
    return play(Boards(boards.mine[states], boards.theirs[states], boards.size), legal.ids)


def perft(size, depth):
    """How many lines of play there are, by plies; a pass is a ply, a finished game has none."""
    boards, counts = start(1, size), []
    for _ in range(depth - 1):
        boards = after_all(boards)
        counts.append(len(boards.mine))
    last = 0
    for mine, theirs in zip(boards.mine.split(1 << 16), boards.theirs.split(1 << 16), strict=True):
        last += len(legal_actions(Boards(mine, theirs, size)).ids)
    return [*counts, last]


KNOWN_8 = [4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288]


def test_lines_of_play_on_8x8():
    assert perft(8, 8) == KNOWN_8[:8]


@pytest.mark.slow
def test_lines_of_play_on_8x8_to_depth_9():
    assert perft(8, 9) == KNOWN_8


def test_lines_of_play_on_4x4():
    assert perft(4, 7) == [4, 12, 44, 128, 424, 1256, 3624]


# --- 4x4 to the end: perfect play of both is known to end 11 to 3 for the second player ------------------------------------


def plies_of(size):
    """All positions that can be reached, ply by ply: each once, seen by the player to move."""
    boards, found = start(1, size), []
    while len(boards.mine):
        found.append(boards)
        mine, theirs = torch.stack(after_all(boards)[:2], 1).unique(dim=0).unbind(1)
        boards = Boards(mine.contiguous(), theirs.contiguous(), size)
    return found


def children(boards, following):
    """The state of each legal action, and where among the positions a ply on it leads."""
    pairs = torch.cat((torch.stack(following[:2], 1), torch.stack(after_all(boards)[:2], 1)))
    _, number = pairs.unique(dim=0, return_inverse=True)
    place = torch.empty_like(number)
    place[number[: len(following.mine)]] = torch.arange(len(following.mine))
    return legal_actions(boards).states(), place[number[len(following.mine) :]]


@pytest.fixture(scope="module")
def solved():
    """The plies of 4x4, and for each the lead that the player to move gets by perfect play."""
    plies = plies_of(4)
    assert finished(plies[-1]).all()
    values = [lead(plies[-1])]
    for boards, following in zip(plies[-2::-1], plies[:0:-1], strict=True):
        states, places = children(boards, following)
        best = torch.full_like(boards.mine, -100).scatter_reduce(0, states, -values[0][places], "amax")
        values.insert(0, torch.where(finished(boards), lead(boards), best))
    return plies, values


def test_4x4_has_few_positions(solved):
    plies, _ = solved
    assert sum(len(boards.mine) for boards in plies) < 100_000
    assert len(plies[1].mine) == 4 and len(plies[2].mine) == 12


def test_the_second_player_wins_11_to_3(solved):
    """Along every line on which both play perfectly: neither can place a disc on the two squares that stay empty."""
    plies, values = solved
    assert values[0].tolist() == [3 - 11]
    perfect, ends = torch.tensor([0]), set()
    for depth, boards in enumerate(plies):
        here = Boards(boards.mine[perfect], boards.theirs[perfect], 4)
        over = finished(here)
        ends |= {
            (int(mine), int(theirs)) if depth % 2 == 0 else (int(theirs), int(mine))
            for mine, theirs in zip(count(here.mine[over]), count(here.theirs[over]), strict=True)
        }
        if depth + 1 < len(plies):
            states, places = children(boards, plies[depth + 1])
            best = (-values[depth + 1][places] == values[depth][states]) & torch.isin(states, perfect)
            perfect = places[best].unique()
    assert ends == {(3, 11)}
