"""Pictures of Othello: squares, ids and boards, by hand on 4x4."""

import pytest

from rlbench import plot_boards
from rlbench.envs.othello import Othello
from rlbench.envs.players import greedy, random_player
from rlbench.experiments.one_game import Move, play_one


@pytest.fixture(scope="module")
def moves():
    return play_one(Othello(4), [("a", random_player(1)), ("b", greedy)], seed=2, opening_plies=2)


def test_squares_and_ids_of_the_first_move(moves):
    """On 4x4 black stands on c2 and b3, white on b2 and c3: black may take b1, a2, d3 and c4, each turning one disc."""
    table = plot_boards.actions_of(moves[0])
    assert list(table["square"]) == ["b1", "a2", "d3", "c4"] and set(table["turns"]) == {1}
    # b1 is bit 1 and turns b2, bit 9; a2 is bit 8.
    assert list(table["id"])[:2] == [str(2 + 512), str(256 + 512)] and table["id_hex"][0] == "0x202"


def test_a_pass_is_a_pass(moves):
    passed = Move(5, moves[-1].obs, [0], 0, "a")
    assert plot_boards.placed(passed, 0) == "pass" and not plot_boards.black_moves(passed)
    assert plot_boards.actions_of(passed).iloc[0].to_dict() == {
        "square": "pass",
        "turns": 0,
        "id": "0",
        "id_hex": "0x0",
    }


def test_a_board_for_the_position_and_one_for_each_action(moves):
    figure = plot_boards.legal_actions(moves[0], "title")
    assert [axis.get_title() for axis in figure.axes] == [
        "black to move:\n4 legal", "b1: id\n0x202", "a2: id\n0x300", "d3: id\n0xc0000", "c4: id\n0x4040000",
    ]  # fmt: skip
    assert len(plot_boards.legal_actions(moves[0], most=2).axes) == 3


def test_a_board_for_every_position_and_discs_counted_at_the_end(moves):
    figure = plot_boards.game(moves)
    titles = [axis.get_title() for axis in figure.axes]
    assert len(titles) == len(moves) and titles[0].startswith("ply 1: black, ") and titles[0].endswith("\nopening")
    assert titles[2].endswith("\na") and titles[3].startswith("ply 4: white, ") and titles[3].endswith("\nb")
    black, white = (int(part.split()[-1]) for part in titles[-1].split("\n")[1].split(","))
    assert black + white == int(moves[-1].obs.sum())
