"""Othello in C with squares for actions, and random play in one call, held to the game in plain Python ints."""

import random

import pytest
import torch

from rlbench.actions import to_unsigned, unpack
from rlbench.envs.othello_one import legal_ids, play, start_of
from rlbench.envs.spaces import EnvError
from rlbench.native.othello import MaskGames, random_play, why_not_native
from rlbench.random import Purpose, random_bits, to_below

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason="no C compiler")


def reference_random_play(size, num_games, steps, seed):
    """Random play of each game by itself, in Python ints: (episodes, passes, actions, boards, ids before the last step)."""
    episodes = passes = actions = 0
    boards, last = [], []
    for i in range(num_games):
        mine, theirs = start_of(size)
        for t in range(steps):
            ids = legal_ids(mine, theirs, size)
            k = to_below(random_bits(seed, Purpose.ACTION, t, i), len(ids))
            actions, passes = actions + len(ids), passes + (ids == [0])
            mine, theirs = play(mine, theirs, ids[k])
            if not legal_ids(mine, theirs, size):
                episodes += 1
                mine, theirs = start_of(size)
        boards.append((mine, theirs))
        last.append(ids)
    return episodes, passes, actions, boards, last


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("size", "num_games", "steps"), [(4, 1, 200), (4, 7, 60), (4, 1023, 13), (6, 9, 80), (8, 8, 90), (8, 1, 1)]
)
def test_random_play(size, num_games, steps, packed):
    played = random_play(size, num_games, steps, 7, packed)
    episodes, passes, actions, boards, last = reference_random_play(size, num_games, steps, 7)
    assert (played.steps, played.episodes, played.passes) == (num_games * steps, episodes, passes)
    assert played.actions == actions and (steps < 60 or episodes > 0)
    assert list(zip(to_unsigned(played.mine), to_unsigned(played.theirs), strict=True)) == boards
    assert unpack(played.last) == last if packed else played.last is None


@pytest.mark.parametrize(("size", "num_games", "steps"), [(4, 1, 60), (4, 9, 40), (6, 7, 40), (8, 8, 70), (4, 1023, 6)])
def test_masks_of_squares(size, num_games, steps):
    games, draw = MaskGames(num_games, size), random.Random(size)
    boards, legal = [start_of(size) for _ in range(num_games)], games.reset()
    for _ in range(steps):
        squares, rewards, ends = [], [], []
        for i, (mine, theirs) in enumerate(boards):
            ids = legal_ids(mine, theirs, size)
            squares_of_ids = [(action & ~theirs).bit_length() - 1 if action else 64 for action in ids]
            mask = sum(1 << square for square in squares_of_ids if square < 64)
            assert to_unsigned(legal[i]) == [mask]
            k = draw.randrange(len(ids))
            squares.append(squares_of_ids[k])
            after = play(mine, theirs, ids[k])
            lead = after[1].bit_count() - after[0].bit_count()
            ends.append(not legal_ids(*after, size))
            rewards.append(float((lead > 0) - (lead < 0)) if ends[-1] else 0.0)
            boards[i] = start_of(size) if ends[-1] else after
        legal, reward, terminated = games.step(torch.tensor(squares))
        assert reward.tolist() == rewards and terminated.tolist() == ends


def test_squares_that_are_not_legal():
    games = MaskGames(9)
    legal = games.reset()
    for square, text in ((64, "64"), (0, "0"), (-1, "-1"), (65, "65"), (2**62, str(2**62))):
        squares = torch.full((9,), 19)
        squares[8] = square
        with pytest.raises(EnvError, match=f"game 8: square {text} is not legal; accepted: 19, 26, 37, 44"):
            games.step(squares)
    for squares in ([19] * 9, torch.full((9,), 19.0), torch.full((8,), 19)):
        with pytest.raises(EnvError, match=r"accepted: \(9,\) torch.int64"):
            games.step(squares)
    assert legal.tolist() == [1 << 19 | 1 << 26 | 1 << 37 | 1 << 44] * 9


def test_refusals_of_sizes_and_steps():
    for number in (0, -1, 1.0, True):
        with pytest.raises(EnvError, match="1 or more games"):
            MaskGames(number)
    for size in (5, 8.0, True):
        with pytest.raises(EnvError, match="accepted: 4, 6, 8"):
            MaskGames(1, size)
    for steps in (-1, 2.0):
        with pytest.raises(EnvError, match="whole numbers from 0"):
            random_play(8, 1, steps, 0)
