"""The slot `games`: the same games in three forms, and what a game must have for each."""

import pytest
import torch

from rlbench.envs.bandit import IdBandit
from rlbench.envs.games import GameStep, Position
from rlbench.envs.othello import Othello
from rlbench.envs.source import env_source
from rlbench.native import build
from rlbench.speedups.games import MADE_BY, SPEEDUP, VARIANTS, plays, requires

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
USABLE = [name for name in VARIANTS if SPEEDUP.requires(name, None, None, CPU, None) is None]


class Coin:
    """One game in plain Python, and nothing more."""

    obs_size, alternating = 1, False

    def reset(self, seed, episode, index):
        self.side = (seed + episode + index) % 2

    def features(self):
        return [float(self.side)]

    def legal(self):
        return [1 << 63, 7]

    def step(self, action_id):
        return 1.0, True


class Written:
    """Three games that somebody wrote side by side."""

    name, num_envs, obs_size, alternating, device = "Written", 3, 1, False, CPU

    def reset(self) -> Position: ...

    def step(self, ids) -> GameStep: ...


@pytest.mark.parametrize("variant", USABLE)
@pytest.mark.parametrize("size", [1, 2, 33])
@pytest.mark.parametrize("seed", [0, 1])
def test_variants_give_the_same(variant, size, seed):
    expected = SPEEDUP.exercise(VARIANTS["one_by_one"], SPEEDUP.make_inputs(size, seed, "cpu"))
    actual = SPEEDUP.exercise(VARIANTS[variant], SPEEDUP.make_inputs(size, seed, "cpu"))
    SPEEDUP.check(expected, actual)
    assert all(tensor.dtype.is_floating_point or tensor.dtype in (torch.int64, torch.bool) for tensor in actual)


GAMES = [
    Othello(4),
    Othello(4, "discs", 5, "random"),
    Othello(6, "discs", 24, "greedy"),
    Othello(4, "win", 9, "alpha_beta_3"),
]


@pytest.mark.parametrize("variant", USABLE)
@pytest.mark.parametrize("game", GAMES, ids=repr)
def test_whole_episodes_are_the_same_with_every_reward_opponent_and_opening(variant, game):
    expected, actual = (plays(VARIANTS[name](game, 5, 11, "cpu"), 20) for name in ("one_by_one", variant))
    for _ in range(2):  # a call goes on where the last one ended
        outcome = expected()
        SPEEDUP.check(outcome, actual())
    ended = outcome[4::7]
    assert torch.stack(ended).any()


@pytest.mark.parametrize("variant", USABLE)
def test_a_wrong_number_is_noticed(variant):
    expected = SPEEDUP.exercise(VARIANTS[variant], SPEEDUP.make_inputs(2, 0, "cpu"))
    wrong = [tensor.clone() for tensor in expected]
    wrong[1][0] ^= 1 << 62  # an id
    with pytest.raises(AssertionError):
        SPEEDUP.check(expected, wrong)


def test_what_othello_can_do():
    source = env_source(Othello())
    for variant in ("one_by_one", "batched"):
        for device in (CPU, CUDA):
            assert requires(variant, None, None, device, source) is None
    reason = requires("native", None, None, CUDA, source)
    assert reason == "native code runs on the CPU, and this runs on cuda; accepted here: one_by_one, batched"


def test_a_game_offers_the_forms_that_it_was_written_in():
    one, many, bandit = env_source(Coin), env_source(Written()), env_source(IdBandit())
    found = {
        source.name: [name for name in VARIANTS if requires(name, None, None, CPU, source) is None]
        for source in (one, many, bandit)
    }
    assert found == {"Coin": ["one_by_one"], "Written": ["batched"], "IdBandit": ["one_by_one", "batched"]}
    assert requires("batched", None, None, CPU, one) == "Coin has no `batched`; accepted here: one_by_one"
    assert "IdBandit has no native code" in requires("native", None, None, CPU, bandit)


def test_a_game_of_ones_is_stepped():
    games = VARIANTS["one_by_one"](env_source(Coin).game, 3, 0, "cpu")
    assert games.name == "Coin" and games.reset().obs.tolist() == [[0.0], [1.0], [0.0]]
    obs, ids, offsets, reward, *_ = plays(games, 1)()
    assert obs.tolist() == [[1.0], [0.0], [1.0]] and reward.tolist() == [1.0] * 3
    assert ids.tolist() == [-(2**63), 7] * 3 and offsets.tolist() == [0, 2, 4, 6]


def test_an_env_that_is_no_game():
    source = env_source("CartPole-v1")
    for variant in VARIANTS:
        reason = requires(variant, None, None, CPU, source)
        assert reason == "CartPole-v1 is no game of sets of actions; leave this slot out"


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    build.load.cache_clear()
    try:
        for source in (None, env_source(Othello())):
            assert "there is no C compiler" in requires("native", None, None, CPU, source)
            assert requires("batched", None, None, CPU, source) is None
    finally:
        build.load.cache_clear()


def test_record():
    assert SPEEDUP.name == "games" and SPEEDUP.plainest == "one_by_one" and SPEEDUP.sameness == "bitwise"
    assert SPEEDUP.workloads == ("ppo",) and list(MADE_BY) == list(VARIANTS)
