"""Games in plain Python, side by side: episodes as one game gives them, and a clear error for each mistake of a game."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlbench.actions import to_unsigned, unpack
from rlbench.envs.one_by_one_games import OneByOneGames
from rlbench.envs.othello_one import OneOthello
from rlbench.envs.spaces import EnvError


class Countdown:
    """Starts at 1 + (seed + episode + index) % 3; each step takes 1 and pays the count; ids are 2^63 + count and 7."""

    obs_size, alternating = 2, False

    def reset(self, seed, episode, index):
        self.left, self.episode = 1 + (seed + episode + index) % 3, episode

    def features(self):
        return [self.left, self.episode]

    def legal(self):
        return [2**63 + self.left, 7]

    def step(self, action_id):
        assert action_id in self.legal()
        self.left -= 1
        return float(self.left), self.left == 0


def first_ids(legal):
    return legal.ids[legal.offsets[:-1]]


def test_ends_and_new_episodes():
    games = OneByOneGames(Countdown, 3, seed=0)
    obs, legal = games.reset()
    assert obs.tolist() == [[1, 0], [2, 0], [3, 0]]
    assert unpack(legal) == [[2**63 + n, 7] for n in (1, 2, 3)]
    step = games.step(first_ids(legal))
    assert step.reward.tolist() == [0, 1, 2]
    assert step.terminated.tolist() == [True, False, False]
    assert not step.truncated.any()
    assert step.next_obs.tolist() == [[0, 0], [1, 0], [2, 0]]
    assert step.obs.tolist() == [[2, 1], [1, 0], [2, 0]]
    assert unpack(step.legal) == [[2**63 + n, 7] for n in (2, 1, 2)]
    assert [t.dtype for t in step[2:5]] == [torch.float32, torch.bool, torch.bool]


def test_what_was_handed_out_stays_as_it_was():
    games = OneByOneGames(Countdown, 4, seed=2)
    obs, legal = games.reset()
    kept = obs.clone(), legal.ids.clone()
    step = games.step(first_ids(legal))
    again = [t.clone() for t in (step.obs, step.next_obs, step.reward, step.legal.ids)]
    games.step(torch.full((4,), 7))
    assert torch.equal(obs, kept[0])
    assert torch.equal(legal.ids, kept[1])
    for now, then in zip((step.obs, step.next_obs, step.reward, step.legal.ids), again, strict=True):
        assert torch.equal(now, then)


def test_othello_is_played_as_by_one_game():
    rules = SimpleNamespace(size=4, reward="discs", opening_plies=2, opponent=None)
    games = OneByOneGames(lambda: OneOthello(rules), 3, seed=5, name="Othello 4x4")
    assert (games.name, games.alternating, games.obs_size) == ("Othello 4x4", True, 32)
    ones, episodes = [OneOthello(rules) for _ in range(3)], [0, 0, 0]
    for i, one in enumerate(ones):
        one.reset(5, 0, i)
    obs, legal = games.reset()
    for _ in range(40):
        assert obs.tolist() == [one.features() for one in ones]
        assert unpack(legal) == [one.legal() for one in ones]
        ids = first_ids(legal)
        step = games.step(ids)
        for i, (one, action) in enumerate(zip(ones, to_unsigned(ids), strict=True)):
            reward, over = one.step(action)
            assert (np.float32(reward), over) == (step.reward[i].item(), step.terminated[i].item())
            assert one.features() == step.next_obs[i].tolist()
            if over:
                episodes[i] += 1
                one.reset(5, episodes[i], i)
        obs, legal = step.obs, step.legal
    assert min(episodes) >= 2


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("legal", [], r"Broken, game 0, episode 0, step 0: legal\(\) is empty, but the game has not ended"),
        ("legal", [2**64], "game 0, episode 0, step 0: the id 18446744073709551616 is refused"),
        ("legal", [-1], "the id -1 is refused"),
        ("legal", [1.0], "the id 1.0 is refused"),
        ("features", [1.0], r"features\(\) has shape \(1,\); obs_size says \(2,\)"),
        ("features", [1.0, float("nan")], "feature 1 is nan"),
        ("features", [1e39, 0.0], "feature 0 is inf"),
        ("features", ["a", 0.0], r"features\(\) gave \['a', 0.0\]; accepted: 2 numbers"),
    ],
)
def test_a_broken_game_is_named_at_the_start(method, value, message):
    broken = type("Broken", (Countdown,), {method: lambda self: value})
    with pytest.raises(EnvError, match=message):
        OneByOneGames(broken, 2, seed=0).reset()


@pytest.mark.parametrize("value", [None, 1.0, (1.0,), (1.0, False, {}), (float("nan"), False), (1.0, 2), ("a", True)])
def test_a_step_that_gives_something_else(value):
    broken = type("Broken", (Countdown,), {"step": lambda self, action_id: value})
    games = OneByOneGames(broken, 1, seed=0)
    with pytest.raises(EnvError, match=r"Broken, game 0, episode 0, step 0: step\(\) gave .*; accepted"):
        games.step(first_ids(games.reset().legal))


def test_a_state_in_midgame_is_named():
    games = OneByOneGames(Countdown, 2, seed=1)
    broken = games.games[1]  # starts at 3
    broken.legal = lambda: [7] if broken.left != 1 else []
    position = games.reset()
    with pytest.raises(EnvError, match=r"Countdown, game 1, episode 0, step 2: legal\(\) is empty"):
        for _ in range(3):
            position = games.step(first_ids(position.legal))


def test_ids_that_are_not_legal_are_named():
    games = OneByOneGames(Countdown, 2, seed=0)
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        games.step(torch.tensor([7, 7]))
    games.reset()
    with pytest.raises(
        EnvError, match="game 1, episode 0, step 0: the id 8 is not legal; accepted: 9223372036854775810, 7"
    ):
        games.step(torch.tensor([7, 8]))
    for ids in (torch.tensor([7]), torch.tensor([7.0, 7.0]), torch.tensor([[7], [7]])):
        with pytest.raises(EnvError, match=r"accepted: \(2,\) torch.int64"):
            games.step(ids)


def test_something_that_is_no_game_is_refused():
    with pytest.raises(EnvError, match="object lacks obs_size, alternating, reset"):
        OneByOneGames(object, 1, seed=0)
    with pytest.raises(EnvError, match="num_envs=0 is refused"):
        OneByOneGames(Countdown, 0, seed=0)
