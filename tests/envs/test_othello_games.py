"""Games of Othello stepped by tensors: the same episodes as one game at a time and as native code."""

import pytest
import torch

from rlbench.actions import pack, unpack
from rlbench.envs.games import GameStep, Position
from rlbench.envs.othello import OPPONENTS, Boards, Othello, legal_actions
from rlbench.envs.spaces import EnvError
from rlbench.random import Purpose, random_bits, to_below


def choices(counts, step, seed):
    """Which of its legal actions each game takes: fixed numbers, the same whoever steps the games."""
    index = torch.arange(len(counts))
    return to_below(random_bits(seed, Purpose.ACTION, step, index), counts)


def played(games, steps, seed=11):
    """The first position of N games, then the outcome of each step, taking the choice-th legal action."""
    position = games.reset()
    yield position.obs, position.legal
    legal = position.legal
    for step in range(steps):
        ids = legal.ids[legal.offsets[:-1] + choices(legal.counts, step, seed)]
        outcome = games.step(ids)
        legal = outcome.legal
        yield outcome


class OneByOne:
    """N of `Othello.one()`, in lock-step: a loop over games, written for this test."""

    def __init__(self, game, num_envs, seed):
        self.games, self.seed = [game.one() for _ in range(num_envs)], seed

    def legal(self):
        return pack([game.legal() for game in self.games])

    def obs(self):
        return torch.tensor([game.features() for game in self.games])

    def reset(self):
        self.episodes = [0] * len(self.games)
        for i, game in enumerate(self.games):
            game.reset(self.seed, 0, i)
        return Position(self.obs(), self.legal())

    def step(self, ids):
        outcomes = [game.step(action & (2**64 - 1)) for game, action in zip(self.games, ids.tolist(), strict=True)]
        next_obs = self.obs()
        for i, (_, over) in enumerate(outcomes):
            if over:
                self.episodes[i] += 1
                self.games[i].reset(self.seed, self.episodes[i], i)
        rewards, over = (torch.tensor(column) for column in zip(*outcomes, strict=True))
        return GameStep(self.obs(), self.legal(), rewards, over, torch.zeros_like(over), next_obs)


def same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, torch.Tensor):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)
        else:
            assert torch.equal(one.offsets, other.offsets)
            assert torch.equal(one.ids, other.ids)


# (opponent, size, opening_plies, reward, num_envs, seed, steps): each kind of opponent, size, opening and number of games
CASES = [
    (None, 4, 0, "win", 17, 0, 60),
    (None, 4, 5, "discs", 17, 1, 60),
    (None, 4, 12, "win", 3, 2**40 + 3, 60),  # openings that end the game are left out
    (None, 6, 5, "discs", 3, 3, 80),
    (None, 8, 0, "win", 3, 4, 80),
    (None, 8, 5, "discs", 1, 5, 130),
    ("random", 4, 0, "win", 17, 6, 40),
    ("random", 4, 5, "discs", 17, 7, 40),
    ("random", 4, 9, "win", 17, 8, 40),
    ("random", 6, 5, "win", 3, 9, 40),
    ("random", 8, 5, "discs", 3, 10, 70),
    ("random", 8, 0, "win", 1, -11, 70),
    ("greedy", 4, 5, "discs", 17, 12, 40),
    ("greedy", 6, 0, "win", 3, 13, 40),
    ("greedy", 8, 5, "win", 3, 14, 40),
    ("alpha_beta_1", 4, 5, "discs", 17, 15, 30),
    ("alpha_beta_2", 4, 5, "win", 17, 16, 30),
    ("alpha_beta_2", 8, 5, "discs", 3, 17, 33),
    ("alpha_beta_3", 4, 9, "discs", 3, 18, 30),
    ("alpha_beta_3", 6, 0, "win", 1, 19, 20),
    ("alpha_beta_4", 4, 5, "win", 3, 20, 20),
]


@pytest.mark.parametrize(("opponent", "size", "plies", "reward", "num_envs", "seed", "steps"), CASES)
def test_the_episodes_are_those_of_one_game_at_a_time(opponent, size, plies, reward, num_envs, seed, steps):
    game = Othello(size, reward, plies, opponent)
    batched = game.batched(num_envs, seed, "cpu")
    assert (batched.name, batched.num_envs, batched.obs_size) == (game.name, num_envs, 2 * size**2)
    assert batched.alternating is (opponent is None)
    ended = 0
    for ours, theirs in zip(played(batched, steps), played(OneByOne(game, num_envs, seed), steps), strict=True):
        same(ours, theirs)
        ended += int(ours.terminated.sum()) if isinstance(ours, GameStep) else 0
    assert ended or opponent == "alpha_beta_3"
    assert not ours.truncated.any()


@pytest.mark.parametrize(("size", "plies", "num_envs"), [(4, 5, 17), (4, 0, 1), (6, 0, 17), (8, 5, 17), (8, 0, 3)])
@pytest.mark.parametrize("opponent", [None, *OPPONENTS])
def test_the_episodes_are_those_of_native_code(opponent, size, plies, num_envs):
    game = Othello(size, "discs", plies, opponent)
    reason = game.why_not_native()
    if reason:
        pytest.skip(reason)
    steps = 150 if opponent in (None, "random", "greedy", "alpha_beta_1") else 40
    for seed in (0, 2**33 + 5):
        batched, native = game.batched(num_envs, seed, "cpu"), game.native(num_envs, seed)
        for ours, theirs in zip(played(batched, steps), played(native, steps), strict=True):
            same(ours, theirs)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_opponent_is_the_same_without_a_compiler(monkeypatch, depth):
    game = Othello(4, "discs", 3, f"alpha_beta_{depth}")
    with_native = list(played(game.batched(9, 3, "cpu"), 12))
    monkeypatch.setattr("rlbench.envs.othello_batch_starts.native_search", lambda: None)
    for ours, theirs in zip(played(game.batched(9, 3, "cpu"), 12), with_native, strict=True):
        same(ours, theirs)


def test_games_do_not_depend_on_how_many_there_are():
    few, many = Othello(4, opening_plies=3).batched(3, 5), Othello(4, opening_plies=3).batched(40, 5)
    for ours, theirs in zip(played(few, 50), played(many, 50), strict=True):
        assert torch.equal(ours[0], theirs[0][:3])


def test_a_second_reset_begins_the_first_episodes_again():
    games = Othello(4, "win", 5, "random").batched(17, 1)
    first = list(played(games, 40))
    for ours, theirs in zip(played(games, 40), first, strict=True):
        same(ours, theirs)


def test_openings_differ_and_ended_games_start_with_them():
    game = Othello(6, opening_plies=4)
    assert len(game.batched(64, 0).reset().obs.unique(dim=0)) > 20
    for outcome in played(game.batched(8, 0), 100):
        if isinstance(outcome, GameStep) and outcome.terminated.any():
            assert (outcome.obs[outcome.terminated].sum(1) == 8).all()  # four discs and four more


def test_half_of_the_episodes_are_begun_by_the_opponent():
    discs = Othello(8, "win", 0, "greedy").batched(6, 0).reset().obs.sum(1)
    assert discs.tolist() == [4, 5, 4, 5, 4, 5]


def test_what_is_handed_out_is_never_changed():
    kept, copies = [], []
    for outcome in played(Othello(4, "win", 2, "random").batched(5, 0), 30):
        tensors = [t for part in outcome for t in (part if isinstance(part, tuple) else (part,))]
        kept.append(tensors)
        copies.append([t.clone() for t in tensors])
    for tensors, before in zip(kept, copies, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(tensors, before, strict=True))
    pointers = [t.data_ptr() for tensors in kept for t in tensors if t.numel()]
    assert len(pointers) == len(set(pointers))


def test_the_reward_of_a_finished_game_is_the_movers():
    """One game by hand: black takes the last white disc, and has won 5 to 0."""
    games = Othello(4, "discs").batched(1, 0)
    games.reset()
    white = 1 << 9
    games._boards = Boards(torch.tensor([0b111 << 16]), torch.tensor([white]), 4)
    legal = legal_actions(games._boards)
    assert unpack(legal) == [[1 << 0 | white, 1 << 1 | white, 1 << 2 | white]]
    outcome = games.step(legal.ids[:1])
    assert outcome.reward.tolist() == [5 / 16]
    assert outcome.terminated.tolist() == [True]
    assert outcome.next_obs[0, :16].sum() == 0  # seen by white, who has nothing left
    assert outcome.next_obs[0, 16:].sum() == 5
    assert unpack(outcome.legal) == [[1 << 1 | 1 << 9, 1 << 8 | 1 << 9, 1 << 19 | 1 << 18, 1 << 26 | 1 << 18]]


def test_the_agents_pass_is_a_step_of_its_own():
    seen = 0
    for outcome in played(Othello(4, "win", 6, "random").batched(50, 0), 30):
        obs, legal = outcome[0], outcome[1]
        passes = [i for i, ids in enumerate(unpack(legal)) if ids == [0]]
        seen += len(passes)
        assert obs.sum(1).max() < 16
    assert seen > 5


@pytest.mark.parametrize("num_envs", [0, -1, 2.0, True, None])
def test_a_number_of_games_that_is_none_is_refused(num_envs):
    with pytest.raises(EnvError, match="num_envs"):
        Othello().batched(num_envs, 0)


def test_ids_of_another_shape_are_refused_and_so_is_a_step_before_reset():
    games = Othello().batched(2, 0)
    with pytest.raises(RuntimeError, match="reset"):
        games.step(torch.zeros(2, dtype=torch.int64))
    games.reset()
    for ids in (torch.zeros(3, dtype=torch.int64), torch.zeros(2), [0, 0]):
        with pytest.raises(EnvError, match="Othello 8x8: ids"):
            games.step(ids)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size", 5),
        ("size", 8.0),
        ("size", True),
        ("reward", "points"),
        ("opening_plies", -1),
        ("opening_plies", 64),
        ("opening_plies", 1.0),
        ("opponent", "alpha_beta_5"),
        ("opponent", "nobody"),
    ],
)
def test_rules_that_do_not_exist_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field}=.*refused; accepted"):
        Othello(**{field: value})


def test_the_description_says_what_it_is():
    assert Othello().name == "Othello 8x8"
    assert Othello(6, opponent="greedy").name == "Othello 6x6 against greedy"
    assert Othello().alternating and not Othello(opponent="random").alternating
    assert Othello(4).obs_size == 32
    assert Othello(4) == Othello(size=4, reward="win", opening_plies=0, opponent=None)


def test_every_named_opponent_plays_a_legal_action():
    game = Othello(6, opening_plies=4)
    assert tuple(game.opponents) == OPPONENTS
    position = game.batched(5, 0).reset()
    legal = unpack(position.legal)
    for make in game.opponents.values():
        ids = make(3)(position.obs, position.legal)
        assert all(action & (2**64 - 1) in legal[i] for i, action in enumerate(ids.tolist()))


@pytest.mark.parametrize(
    ("opponent", "size", "plies", "least"), [(None, 4, 12, 0), ("random", 8, 20, 3), ("greedy", 6, 9, 9)]
)
def test_openings_of_different_length_are_the_same_in_all_forms(opponent, size, plies, least):
    game = Othello(size, "discs", plies, opponent, least_opening_plies=least)
    steps, forms = 90, [OneByOne(game, 17, 6), game.batched(17, 6)]
    if game.why_not_native() is None:
        forms.append(game.native(17, 6))
    for first, *others in zip(*(played(form, steps) for form in forms), strict=True):
        for other in others:
            same(other, first)


def test_all_lengths_of_an_opening_occur():
    """Discs on the board at the start of an episode: the four in the middle, and one a ply where nobody passes."""
    obs, _ = Othello(8, opening_plies=3, least_opening_plies=1).batched(400, 2).reset()
    counts = obs.sum(1).to(torch.int64).bincount(minlength=8).tolist()
    assert sum(counts[5:8]) == 400 and min(counts[5:8]) > 100


@pytest.mark.parametrize("least", [-1, 6, 2.0, True])
def test_a_least_number_of_plies_that_cannot_be_is_refused(least):
    with pytest.raises(ValueError, match="least_opening_plies"):
        Othello(8, opening_plies=5, least_opening_plies=least)
