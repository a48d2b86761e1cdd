"""Episodes from somebody's own recorder: what is read, and one error that names the place of each mistake."""

import math

import numpy as np
import pytest
import torch

from rlbench.actions import unpack
from rlbench.episodes import EpisodeError, Episodes

TOP = 2**64 - 1


def two_games() -> list[list[dict]]:
    """A game of three steps and one of a single step with a single action."""
    return [
        [
            {
                "features": [0.0, 1.0],
                "legal": [3, TOP, 2**63],
                "action": 2**63,
                "reward": 0.0,
                "log_prob": math.log(0.5),
            },
            {"features": [1.0, 0.5], "legal": [5, 0], "action": 5, "reward": -1.5, "log_prob": -0.25},
            {"features": [2.0, 0.0], "legal": [2**53 + 1], "action": 2**53 + 1, "reward": 2.0, "log_prob": 0.0},
        ],
        [{"features": [7.0, 7.0], "legal": [1, 2], "action": 2, "reward": 1.0, "log_prob": -3.0}],
    ]


def test_dicts():
    games = Episodes.from_lists(two_games(), alternating=True, game="mine")
    assert (len(games), games.steps, games.alternating, games.game, games.behaviour) == (2, 4, True, "mine", True)
    assert games.obs.tolist() == [[0, 1], [1, 0.5], [2, 0], [7, 7]] and games.obs.dtype == torch.float32
    assert unpack(games.legal) == [[3, TOP, 2**63], [5, 0], [2**53 + 1], [1, 2]]
    assert games.choice.tolist() == [2, 0, 0, 1]
    assert games.log_prob.tolist() == pytest.approx([math.log(0.5), -0.25, 0.0, -3.0], rel=1e-6)
    assert games.reward.tolist() == [0.0, -1.5, 2.0, 1.0]
    assert games.terminated.tolist() == [False, False, True, True] and not games.truncated.any()
    assert games.bounds.tolist() == [0, 3, 4] and games.last_obs.tolist() == [[0, 0], [0, 0]]


def test_tuples_of_numpy_values_without_log_probs():
    steps = [
        (np.array([1, 2], np.int32), np.array([9, TOP], np.uint64), np.uint64(TOP), np.float64(0.5)),
        (torch.tensor([3.0, 4.0]).numpy(), np.array([-1, 4], np.int64), 4, 1, None, False, True, [5.0, 6.0]),
    ]
    games = Episodes.from_lists(iter([tuple(steps)]))
    assert not games.behaviour and games.log_prob.tolist() == [0.0, 0.0]
    assert games.choice.tolist() == [1, 1] and unpack(games.legal) == [[9, TOP], [TOP, 4]]
    assert games.truncated.tolist() == [False, True] and games.terminated.tolist() == [False, False]
    assert games.last_obs.tolist() == [[5.0, 6.0]]


def test_no_episodes():
    assert len(Episodes.from_lists([])) == 0 and "no episodes" in Episodes.from_lists([]).describe()


def with_step(change: dict, episode: int = 0, step: int = 1) -> list[list[dict]]:
    """The two games with one step changed; a value of `...` takes the field away."""
    games = two_games()
    merged = {**games[episode][step], **change}
    games[episode][step] = {name: value for name, value in merged.items() if value is not ...}
    return games


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"action": 6}, "the action 6 is not among the 2 legal ids"),
        ({"legal": []}, "no legal action"),
        ({"legal": [5, 2**64]}, "legal: the id 18446744073709551616 is refused"),
        ({"legal": [5, -1]}, "legal: the id -1 is refused"),
        ({"legal": [5, 1.0]}, "legal: the id 1.0 is refused"),
        ({"legal": 5}, "legal: 5 is refused"),
        ({"legal": None}, "legal: None is refused"),
        ({"action": None}, "action: the id None is refused"),
        ({"action": True}, "action: the id True is refused"),
        ({"features": [1.0]}, r"features: of shape \(1,\); accepted: 2"),
        ({"features": [1.0, math.nan]}, "features: number 1 is nan"),
        ({"features": [math.inf, 1.0]}, "features: number 0 is inf"),
        ({"features": "ab"}, "features: 'ab' are no numbers"),
        ({"reward": None}, "reward: None is refused"),
        ({"reward": math.nan}, "reward: nan is refused"),
        ({"log_prob": math.inf}, "log_prob: inf is refused"),
        ({"log_prob": ...}, "log_prob is missing"),
        ({"terminated": True}, "on an earlier step"),
        ({"truncated": True, "next_features": [0, 0]}, "on an earlier step"),
        ({"reward": ...}, "'reward' is missing"),
        ({"colour": 1}, "'colour' is unknown"),
    ],
)
def test_mistakes_are_named(change, message):
    with pytest.raises(EpisodeError, match=f"^episode 0, step 1.*{message}"):
        Episodes.from_lists(with_step(change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"terminated": False}, "on the last step"),
        ({"terminated": True, "truncated": True}, "terminated=True and truncated=True"),
        ({"truncated": True}, "truncated without next_features"),
        ({"truncated": True, "next_features": [1.0]}, r"next_features: of shape \(1,\)"),
        ({"truncated": True, "next_features": [1.0, math.nan]}, "next_features: number 1 is nan"),
    ],
)
def test_mistakes_in_an_ending_are_named(change, message):
    with pytest.raises(EpisodeError, match=f"^episode 1, step 0.*{message}"):
        Episodes.from_lists(with_step(change, 1, 0))


def test_things_that_are_no_steps():
    with pytest.raises(EpisodeError, match="^episode 1 has no step"):
        Episodes.from_lists([two_games()[0], []])
    for bad in ("text", 5, (1, 2, 3), [None] * 9):
        with pytest.raises(EpisodeError, match="^episode 0, step 0: .* is no step"):
            Episodes.from_lists([[bad]])
    with pytest.raises(EpisodeError, match="^log_prob: episode 0, step 0: a log-probability"):
        Episodes.from_lists(with_step({"log_prob": 0.5}, 0, 0))
