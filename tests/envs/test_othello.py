"""The rules of Othello on tensors, against rules written again, square by square, and cases by hand."""

import pytest
import torch

from rlbench.actions import ActionError, unpack
from rlbench.envs.othello import (
    SIZES,
    Boards,
    boards_of,
    check_play,
    count,
    features,
    finished,
    lead,
    legal_actions,
    legal_squares,
    nth_square,
    play,
    play_square,
    start,
)
from rlbench.envs.othello_batch import BLOCK

MASK = 2**64 - 1


def signed(bits):
    return bits - 2**64 if bits >= 2**63 else bits


def board(rows):
    """Boards of one position drawn as text: x the player to move, o the other."""
    sets = [
        signed(sum(1 << (8 * r + c) for r, row in enumerate(rows) for c, at in enumerate(row) if at == who))
        for who in "xo"
    ]
    return Boards(*(torch.tensor([bits]) for bits in sets), len(rows))


def squares(ids):
    """(row, column) of each square of a set."""
    return [(b // 8, b % 8) for b in range(64) if ids >> b & 1]


# --- the rules again, by walking over an array -------------------------------------------------------------------------


def walk(grid, size, row, column, who):
    """The squares turned over by a disc of `who` (1 or -1) there."""
    turned = []
    for down, right in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]:
        line, r, c = [], row + down, column + right
        while 0 <= r < size and 0 <= c < size and grid[r][c] == -who:
            line.append((r, c))
            r, c = r + down, c + right
        if line and 0 <= r < size and 0 <= c < size and grid[r][c] == who:
            turned += line
    return turned


def all_moves(grid, size, who):
    """{(row, column): squares turned over}, row by row."""
    every = [(r, c) for r in range(size) for c in range(size) if grid[r][c] == 0]
    found = {at: walk(grid, size, *at, who) for at in every}
    return {at: turned for at, turned in found.items() if turned}


def grid_of(mine, theirs, size):
    return [
        [(mine >> (8 * r + c) & 1) - (theirs >> (8 * r + c) & 1) for c in range(size)] for r in range(size)
    ]  # 1 for the player to move


def expected_ids(grid, size):
    moves = all_moves(grid, size, 1)
    if moves:
        return [sum(1 << (8 * r + c) for r, c in (at, *turned)) for at, turned in moves.items()]
    return [0] if all_moves(grid, size, -1) else []


def grids(boards):
    return [
        grid_of(mine & MASK, theirs & MASK, boards.size)
        for mine, theirs in zip(boards.mine.tolist(), boards.theirs.tolist(), strict=True)
    ]


@pytest.mark.parametrize("size", SIZES)
def test_random_play_follows_the_rules(size):
    """Every position of 60 games until all are over, and a few plies on: a finished game has no action."""
    boards, generator = start(60, size), torch.Generator().manual_seed(size)
    passes = ended_early = 0
    for _ in range(size**2 + 8):
        legal, drawn = legal_actions(boards), grids(boards)
        ids = unpack(legal)
        assert ids == [expected_ids(grid, size) for grid in drawn]
        assert finished(boards).tolist() == [not found for found in ids]
        assert lead(boards).tolist() == [sum(map(sum, grid)) for grid in drawn]
        planes = [[[v == who for v in row] for row in grid] for grid in drawn for who in (1, -1)]
        assert torch.equal(features(boards), torch.tensor(planes).reshape(60, -1).float())
        passes += ids.count([0])
        ended_early += sum(not found and any(0 in row for row in grid) for found, grid in zip(ids, drawn, strict=True))
        place = (torch.rand(60, generator=generator) * legal.counts).long()
        chosen = torch.tensor([signed(found[k]) if found else 0 for found, k in zip(ids, place.tolist(), strict=True)])
        boards = play(boards, chosen)
    assert finished(boards).all()
    assert passes > 0
    assert ended_early > 0 or size == 8  # neither could move with squares left: rare on 8x8


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("num_games", [1, 2, BLOCK + 1])
def test_positions_that_no_game_reaches_follow_the_rules_too(size, num_games):
    """Discs anywhere, corners and edges full; for few games and for many, which take another path."""
    generator = torch.Generator().manual_seed(num_games)
    colour = torch.randint(3, (num_games, size, size), generator=generator)
    if num_games == 2:
        colour[0, :, ::2], colour[1] = 1, 2
    boards = boards_of(torch.stack((colour == 1, colour == 2), 1).flatten(1).float(), size)
    step = max(1, num_games // 50)
    ids = unpack(legal_actions(boards))
    for i in range(0, num_games, step):
        assert ids[i] == expected_ids(((colour[i] == 1).int() - (colour[i] == 2).int()).tolist(), size)


@pytest.mark.parametrize("size", SIZES)
def test_squares_and_ids_say_the_same(size):
    boards = start(30, size)
    generator = torch.Generator().manual_seed(0)
    for _ in range(size**2 - 4):
        moves, legal = legal_squares(*boards), legal_actions(boards)
        k = (torch.rand(30, generator=generator) * count(moves)).long()
        square = nth_square(moves, k)
        ids = unpack(legal)
        chosen = [found[at] if found else 0 for found, at in zip(ids, k.tolist(), strict=True)]
        by_square, by_id = play_square(boards, square), play(boards, torch.tensor([signed(c) for c in chosen]))
        assert torch.equal(by_square.mine, by_id.mine) and torch.equal(by_square.theirs, by_id.theirs)
        boards = by_id


# --- single cases by hand --------------------------------------------------------------------------------------------------


def test_the_start_of_8x8():
    boards = start(2)
    assert squares(boards.mine[1].item()) == [(3, 4), (4, 3)]
    assert squares(boards.theirs[0].item()) == [(3, 3), (4, 4)]
    assert [squares(action) for action in unpack(legal_actions(boards))[1]] == [
        [(2, 3), (3, 3)],
        [(3, 2), (3, 3)],
        [(4, 4), (4, 5)],
        [(4, 4), (5, 4)],
    ]
    assert boards.mine.dtype == boards.theirs.dtype == torch.int64


def test_the_last_corner_has_bit_63():
    boards = board(["x.......", ".o......", "..o.....", "...o....", "....o...", ".....o..", "......o.", "........"])
    (ids,) = unpack(legal_actions(boards))
    assert ids == [sum(1 << 9 * i for i in range(1, 8))]
    assert ids[0] >= 2**63
    after = play(boards, legal_actions(boards).ids)
    assert after.mine.item() == 0
    assert after.theirs.item() & MASK == sum(1 << 9 * i for i in range(8))
    assert count(after.theirs).item() == 8


@pytest.mark.parametrize(
    "rows",
    [
        ["........", "......xo", "o.......", "........", "........", "........", "........", "........"],
        ["........", "........", ".......o", "ox......", "........", "........", "........", "........"],
        ["........", ".......o", "........", "o.......", "x.......", "........", "........", "........"],
        ["........", "x.......", ".......o", "o.......", "........", "........", "........", "........"],
    ],
)
def test_no_line_runs_over_an_edge_into_the_next_row(rows):
    boards = board(rows)
    expected = expected_ids(grid_of(boards.mine.item(), boards.theirs.item(), 8), 8)
    assert unpack(legal_actions(boards)) == [expected]
    everything = Boards(boards.mine.repeat(BLOCK + 1), boards.theirs.repeat(BLOCK + 1), 8)
    assert unpack(legal_actions(everything))[-1] == expected


def test_a_pass_is_legal_only_where_nothing_else_is():
    """Between games with moves, a game over and a pass: each has its own."""
    passing = board(["oooo", "xxxo", "...o", "...."])
    assert legal_squares(*passing).item() == 0
    over = board(["xxxx", "xxxx", "xx..", "...."])
    boards = Boards(
        torch.cat((start(1, 4).mine, passing.mine, over.mine, start(1, 4).mine)),
        torch.cat((start(1, 4).theirs, passing.theirs, over.theirs, start(1, 4).theirs)),
        4,
    )
    ids = unpack(legal_actions(boards))
    assert [len(found) for found in ids] == [4, 1, 0, 4]
    assert ids[1] == [0]
    assert finished(boards).tolist() == [False, False, True, False]
    after = play(boards, torch.tensor([ids[0][0], 0, 0, ids[3][0]]))
    assert after.mine[1] == boards.theirs[1] and after.theirs[1] == boards.mine[1]


def test_no_games_have_no_actions():
    legal = legal_actions(start(0))
    assert legal.ids.shape == (0,)
    assert legal.offsets.tolist() == [0]
    assert features(start(0, 4)).shape == (0, 32)


@pytest.mark.parametrize("size", SIZES)
def test_features_and_back(size):
    generator = torch.Generator().manual_seed(1)
    obs = torch.randint(3, (20, size**2), generator=generator)
    obs = torch.cat((obs == 1, obs == 2), 1).float()
    obs[0, : size**2], obs[0, size**2 :] = 1.0, 0.0
    boards = boards_of(obs, size)
    assert torch.equal(features(boards), obs)
    assert boards.mine[0].item() & MASK == sum(1 << (8 * r + c) for r in range(size) for c in range(size))
    strided = obs.t().contiguous().t()
    assert torch.equal(boards_of(strided, size).mine, boards.mine)


def test_features_of_another_size_are_refused():
    with pytest.raises(ValueError, match="8x8 board has"):
        boards_of(torch.zeros(3, 72), 8)


@pytest.mark.parametrize("size", [0, 5, 10, 8.0, True, None])
def test_other_sizes_are_refused(size):
    with pytest.raises(ValueError, match="refused; accepted: 4, 6, 8"):
        start(1, size)


def test_a_checked_play_names_the_game():
    boards = board(["oooo", "xxxo", "...o", "...."])
    two = Boards(torch.cat((start(1, 4).mine, boards.mine)), torch.cat((start(1, 4).theirs, boards.theirs)), 4)
    good = torch.tensor([legal_actions(two).ids[0].item(), 0])
    assert torch.equal(check_play(two, good).mine, play(two, good).mine)
    with pytest.raises(ActionError, match="game 1: the id 18446744073709551615 is refused; accepted: 0"):
        check_play(two, torch.tensor([good[0], -1]))
    with pytest.raises(ActionError, match="game 0: the id 0 is refused; accepted: 514, 768, "):
        check_play(two, torch.tensor([0, 0]))
    over = board(["xxxx", "xxxx", "xx..", "...."])
    with pytest.raises(ActionError, match="game 0: the id 0 is refused; the game is over"):
        check_play(over, torch.tensor([0]))
    with pytest.raises(ActionError, match="one a game"):
        check_play(two, torch.tensor([0]))
