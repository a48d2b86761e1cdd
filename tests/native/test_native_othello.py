"""Games of Othello in C, held to the game in plain Python ints: whole episodes, to the last bit."""

import copy

import pytest
import torch

from rlbench.actions import pack, to_unsigned, unpack
from rlbench.envs.one_by_one_games import OneByOneGames
from rlbench.envs.othello import Othello
from rlbench.envs.othello_one import start_of
from rlbench.envs.spaces import EnvError
from rlbench.native import othello
from rlbench.native.othello import NativeOthello

pytestmark = pytest.mark.skipif(othello.why_not_native() is not None, reason="no C compiler")


def tensors_in(thing):
    return [thing] if isinstance(thing, torch.Tensor) else [t for part in thing for t in tensors_in(part)]


def same(expected, actual):
    for one, other in zip(tensors_in(expected), tensors_in(actual), strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=0)


def choice(legal, t, lazy=False):
    """An action a game: the first, or another one each time."""
    place = 0 if lazy else (3 * t + torch.arange(len(legal.counts)) ** 2) % legal.counts
    return legal.ids[legal.offsets[:-1] + place]


def play_both(game, num_envs, steps, seed=0, lazy=False):
    """How many games ended, in Python as in C."""
    plain, native = OneByOneGames(game.one, num_envs, seed), NativeOthello(game, num_envs, seed)
    position, ended = plain.reset(), 0
    same(position, native.reset())
    for t in range(steps):
        ids = choice(position.legal, t, lazy)
        position = plain.step(ids)
        same(position, native.step(ids))
        ended += int(position.terminated.sum())
    return ended


SMALL = [
    Othello(4),
    Othello(4, "discs", 3),
    Othello(4, "win", 11, "random"),  # most openings end the game, many after the opponent's first move
    Othello(4, "discs", 9, "greedy"),
    Othello(4, "win", 2, "alpha_beta_1"),
    Othello(4, "win", 8, "alpha_beta_4"),
    Othello(4, "win", 63),
]


@pytest.mark.parametrize("num_envs", [1, 7, 8, 9])
@pytest.mark.parametrize("game", SMALL, ids=repr)
def test_small_boards_have_the_same_episodes(game, num_envs):
    assert play_both(game, num_envs, 45, seed=num_envs) >= 2 * num_envs


@pytest.mark.parametrize(
    "game",
    [Othello(8), Othello(8, "discs", 50, "random"), Othello(6, "discs", 5), Othello(6, "win", 20, "alpha_beta_2")],
    ids=repr,
)
def test_larger_boards_have_the_same_episodes(game):
    assert play_both(game, 9, 70, seed=2**40 + 3) >= 9


def test_many_games():
    assert play_both(Othello(4, "win", 7), 1023, 8) > 1023


def test_all_games_end_in_the_last_step():
    """Games that are played alike end together: every observation is then that of a new game."""
    native = NativeOthello(Othello(4), 9, 0)
    position, ended, steps = native.reset(), torch.zeros(1), 0
    first = position.obs
    while not ended.any():
        position = native.step(choice(position.legal, 0, lazy=True))
        ended, steps = position.terminated, steps + 1
    assert ended.all() and not position.truncated.any()
    same(position.obs, first)
    assert (position.next_obs.sum(1) > 10).all() and position.reward.abs().min() == 1
    assert play_both(Othello(4), 9, steps, lazy=True) == 9


def test_rewards_are_the_agents_and_passes_are_steps():
    game = Othello(4, "discs", 1, "random")
    native = NativeOthello(game, 16, 3)
    position, rewards, passes = native.reset(), [], 0
    for t in range(40):
        ids = choice(position.legal, t)
        passes += int((ids == 0).sum())
        position = native.step(ids)
        mine, theirs = position.next_obs.view(16, 2, 16).sum(2).unbind(1)  # discs, seen by the agent
        expected = torch.where(position.terminated, (mine - theirs) / 16, 0)
        same(expected, position.reward)
        rewards += position.reward[position.terminated].tolist()
    assert passes > 5 and min(rewards) < 0 < max(rewards)


def test_bit_63_is_an_id_like_any_other():
    game = Othello(8, "win", 40)
    native = NativeOthello(game, 200, 1)
    position = native.reset()
    corner = position.legal.ids < 0  # a disc on the last square
    assert corner.any()
    mine = position.legal.states()[corner][0]
    ids = choice(position.legal, 0, lazy=True)
    ids[mine] = position.legal.ids[corner][0]
    after = native.step(ids)
    assert after.next_obs[mine, 127] == 1 and position.obs[mine, [63, 127]].sum() == 0
    assert max(to_unsigned(ids)) >= 2**63


def test_a_reset_starts_the_first_episodes_again():
    native = NativeOthello(Othello(4, "win", 2, "random"), 5, 1)

    def played():
        position = native.reset()
        return [position, *(position := native.step(choice(position.legal, t)) for t in range(20))]

    same(played(), played())


def test_memory_that_was_handed_out_is_the_callers(monkeypatch):
    """Blocks are small, so that several are used up, and all that was handed out is overwritten at once."""
    game = Othello(4, "win", 1, "random")
    plain, expected = NativeOthello(game, 3, 5), []
    position = plain.reset()
    for t in range(50):
        position = plain.step(choice(position.legal, t))
        expected.append([tensor.clone() for tensor in tensors_in(position)])
    monkeypatch.setattr(othello, "BLOCK", 2000)
    monkeypatch.setattr(othello, "IDS", 40)
    other = NativeOthello(game, 3, 5)
    position, kept = other.reset(), []
    for t in range(50):
        ids = choice(position.legal, t)
        for tensor in tensors_in(position):
            tensor.fill_(1)
        position = other.step(ids)
        same(expected[t], position)
        kept.append(position)
    addresses = [tensor.data_ptr() for step in kept for tensor in tensors_in(step)]
    assert len(set(addresses)) == len(addresses)


def test_refusals_before_c_sees_them():
    native = NativeOthello(Othello(4), 2, 0)
    with pytest.raises(RuntimeError, match="call reset"):
        native.step(torch.zeros(2, dtype=torch.int64))
    native.reset()
    for ids in ([0, 0], torch.zeros(2), torch.zeros(3, dtype=torch.int64), torch.zeros(2, 1, dtype=torch.int64)):
        with pytest.raises(EnvError, match="accepted"):
            native.step(ids)
    for number in (0, -1, 1.0, True):
        with pytest.raises(EnvError, match="1 or more games"):
            NativeOthello(Othello(4), number, 0)


def test_an_id_that_is_not_legal_is_named_with_its_game_and_nothing_is_stepped():
    native = NativeOthello(Othello(6), 11, 0)
    position = native.reset()
    good = choice(position.legal, 1)
    accepted = ", ".join(map(str, unpack(position.legal)[9]))
    placed = int(good[9]) & ~int(pack([[start_of(6)[1]]]).ids)
    for bad in (0, -1, placed, int(good[9]) | 1, -(2**63), 2**62):
        ids = good.clone()
        ids[9] = bad
        with pytest.raises(
            EnvError, match=f"6x6, game 9: the id {bad & (2**64 - 1)} is not legal; accepted: {accepted}."
        ):
            native.step(ids)
    other = NativeOthello(Othello(6), 11, 0)
    other.reset()
    same(other.step(good), native.step(good))


def test_rules_of_a_subclass_are_its_own():
    class Upside(Othello):
        pass

    with pytest.raises(EnvError, match="8x8 has no native counterpart"):
        NativeOthello(Upside(), 1, 0)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(NativeOthello(Othello(), 1, 0))
