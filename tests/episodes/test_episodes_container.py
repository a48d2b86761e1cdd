"""The container: slices, returns, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rlbench.actions import ActionSets, unpack
from rlbench.episodes import EpisodeError, Episodes


def made(lengths: list[int], alternating: bool = False, truncated: tuple[int, ...] = (), seed: int = 0) -> Episodes:
    """Random episodes of these lengths with 1 to 5 actions a state; `truncated` names those that were broken off."""
    rng = np.random.default_rng(seed)
    games = []
    for e, length in enumerate(lengths):
        steps = []
        for t in range(length):
            ids = rng.integers(0, 2**64, rng.integers(1, 6), np.uint64)
            step = {"features": rng.normal(size=3), "legal": ids, "action": rng.choice(ids), "reward": rng.normal()}
            cut = {"truncated": True, "next_features": rng.normal(size=3)} if e in truncated and t == length - 1 else {}
            steps.append({**step, "log_prob": -rng.random(), **cut})
        games.append(steps)
    return Episodes.from_lists(games, alternating=alternating)


def same(one: Episodes, other: Episodes) -> bool:
    tensors = ("obs", "choice", "log_prob", "reward", "terminated", "truncated", "last_obs", "bounds")
    rest = ("alternating", "behaviour", "game")
    return (
        all(torch.equal(getattr(one, name), getattr(other, name)) for name in tensors)
        and all(torch.equal(a, b) for a, b in zip(one.legal, other.legal, strict=True))
        and all(getattr(one, name) == getattr(other, name) for name in rest)
    )


def test_returns_by_hand():
    """Rewards 1, 2, 4 in one episode and 8 in the next, discount 1/2."""
    steps = [([0.0], [1], 1, float(reward)) for reward in (1, 2, 4, 8)]
    games = Episodes.from_lists([steps[:3], steps[3:]])
    assert games.returns(0.5).tolist() == [3.0, 4.0, 4.0, 8.0]
    assert games.returns().tolist() == [7.0, 6.0, 4.0, 8.0]
    turns = Episodes.from_lists([steps[:3], steps[3:]], alternating=True)
    assert turns.returns(0.5).tolist() == [1.0, 0.0, 4.0, 8.0]  # 2 - 4/2 = 0, 1 - 0/2 = 1
    assert games.returns(0.0).tolist() == games.reward.tolist()


@pytest.mark.parametrize("alternating", [False, True])
def test_returns_of_many_are_those_of_each(alternating):
    games = made([4, 1, 9, 2], alternating, truncated=(2,))
    sign = -1.0 if alternating else 1.0
    expected = []
    for a, b in zip([0, 4, 5, 14], [4, 5, 14, 16], strict=True):
        rewards, total, found = games.reward[a:b].tolist(), 0.0, []
        for reward in reversed(rewards):
            total = reward + 0.9 * sign * total
            found.append(total)
        expected += found[::-1]
    assert games.returns(0.9).tolist() == pytest.approx(expected, abs=1e-6)


def test_slices_are_whole_episodes():
    games = made([3, 1, 4, 2], truncated=(0, 3))
    assert games.lengths.tolist() == [3, 1, 4, 2] and games.episode_of().tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 3, 3]
    part = games[1:3]
    assert (len(part), part.steps, part.bounds.tolist()) == (2, 5, [0, 1, 5])
    assert torch.equal(part.obs, games.obs[3:8]) and unpack(part.legal) == unpack(games.legal)[3:8]
    assert same(games[:], games) and same(games[[0, 1, 2, 3]], games) and same(games[-1], games[3:])
    turned = games[::-1]
    assert turned.lengths.tolist() == [2, 4, 1, 3] and torch.equal(turned.last_obs, games.last_obs.flip(0))
    assert torch.equal(turned.obs[:2], games.obs[8:]) and same(turned[::-1], games)
    assert same(games[torch.tensor([2, 0])], games[[2, 0]]) and len(games[2:2]) == 0 and len(games[[]]) == 0
    with pytest.raises(IndexError, match="episode 4 is not there: there are 4"):
        games[4]


def test_describe_counts():
    text = made([3, 1, 4], truncated=(1,)).describe()
    assert "3 episodes with 8 steps, 1 to 4 in an episode" in text and "1 truncated" in text and "stored" in text


GAMES = made([3, 2], truncated=(1,))


def with_row(name: str, row: int, value: float) -> Episodes:
    field = getattr(GAMES, name).clone()
    field[row] = value
    return replace(GAMES, **{name: field})


@pytest.mark.parametrize(
    ("name", "row", "value", "message"),
    [
        ("obs", 4, float("nan"), "obs: episode 1, step 1: a feature"),
        ("reward", 2, float("inf"), "reward: episode 0, step 2: a reward"),
        ("log_prob", 3, 0.1, "log_prob: episode 1, step 0: a log-probability"),
        ("choice", 1, 99, "choice: episode 0, step 1: a choice beyond"),
        ("choice", 1, -1, "choice: episode 0, step 1: a choice beyond"),
        ("terminated", 0, True, "terminated: episode 0, step 0: an end before"),
        ("terminated", 2, False, "terminated: episode 0, step 2: a last step neither"),
        ("terminated", 4, True, "terminated: episode 1, step 1: an end both"),
        ("last_obs", 1, float("nan"), "last_obs: episode 1"),
        ("bounds", 1, 5, "bounds: episode 1 has no step"),
        ("bounds", 2, 4, "bounds: from 0 to 4; accepted: from 0 to 5"),
    ],
)
def test_wrong_rows_are_named(name, row, value, message):
    with pytest.raises(EpisodeError, match=f"^{message}"):
        with_row(name, row, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"obs": GAMES.obs.double()}, r"^obs: \(5, 3\) torch.float64 is refused"),
        ({"obs": GAMES.obs[:4]}, r"^obs: \(4, 3\)"),
        ({"reward": GAMES.reward[:, None]}, "^reward: "),
        ({"last_obs": GAMES.last_obs[:1]}, "^last_obs: "),
        ({"legal": ActionSets(GAMES.legal.ids, GAMES.legal.offsets[:-1])}, "^legal: offsets of 4 states"),
        ({"legal": ActionSets(GAMES.legal.ids[:-1], GAMES.legal.offsets)}, "^legal: offsets run from 0"),
        ({"behaviour": False}, "^log_prob: episode 0, step 0: not 0"),
    ],
)
def test_wrong_shapes_are_named(change, message):
    with pytest.raises(EpisodeError, match=message):
        replace(GAMES, **change)


def test_a_state_without_an_action_is_named():
    offsets = GAMES.legal.offsets.clone()
    offsets[4] = offsets[3]
    with pytest.raises(EpisodeError, match="^legal: episode 1, step 0: state 3 has no legal action"):
        replace(GAMES, legal=ActionSets(GAMES.legal.ids, offsets))
