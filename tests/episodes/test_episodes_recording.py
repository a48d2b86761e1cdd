"""Recording: whole episodes, as the game played them, with the log-probabilities that the policy had."""

import pytest
import torch

from rlbench.actions import pack, unpack
from rlbench.envs import othello
from rlbench.envs.bandit import IdBandit
from rlbench.envs.games import GameStep, Position
from rlbench.envs.othello import Othello
from rlbench.envs.players import RandomPlayer
from rlbench.episodes import EpisodeError, record
from rlbench.evaluations.loop import Loop
from rlbench.models.action_scorer import ActionScorer
from rlbench.random import Purpose, random_bits, to_below


class Countdown:
    """A game in plain Python: from 1 to 5 steps, id 2^63 + k at step k among others, reward k; drawn from the hash."""

    obs_size, alternating, name = 2, True, "Countdown"

    def reset(self, seed: int, episode: int, index: int) -> None:
        self.left = 1 + to_below(random_bits(seed, Purpose.RESET, episode, index), 5)
        self.who, self.step_number = float(10 * episode + index), 0

    def features(self) -> list[float]:
        return [self.who, float(self.left)]

    def legal(self) -> list[int]:
        return [2**63 + k for k in range(self.step_number + 1)] if self.left else []

    def step(self, action_id: int) -> tuple[float, bool]:
        assert action_id in self.legal()
        self.left, self.step_number = self.left - 1, self.step_number + 1
        return float(self.step_number), self.left == 0


class Rules:
    name, obs_size, alternating, opponents = "Countdown", 2, True, {}

    def one(self) -> Countdown:
        return Countdown()


def last(obs: torch.Tensor, legal) -> torch.Tensor:
    return legal.ids[legal.offsets[1:] - 1]


@pytest.mark.parametrize(("episodes", "num_envs"), [(1, None), (7, 3), (6, 3), (4, 9), (10, 1)])
def test_episodes_are_those_of_the_game(episodes, num_envs):
    """Each as played alone in plain Python: episode j is the (j // N)-th of game j % N."""
    games = record(Rules(), last, episodes, seed=5, num_envs=num_envs)
    assert len(games) == episodes and games.alternating and games.game == "Countdown" and not games.behaviour
    width = min(episodes, num_envs or episodes)
    for j in range(episodes):
        game, one, rewards, features, legal = Countdown(), games[j], [], [], []
        game.reset(5, j // width, j % width)
        over = False
        while not over:
            features.append(game.features())
            legal.append(game.legal())
            reward, over = game.step(game.legal()[-1])
            rewards.append(reward)
        assert one.obs.tolist() == features and unpack(one.legal) == legal and one.reward.tolist() == rewards
        assert one.choice.tolist() == [len(ids) - 1 for ids in legal]
        assert one.terminated.tolist() == [False] * (len(rewards) - 1) + [True] and not one.log_prob.any()


def test_a_policy_draws_by_its_probabilities_and_keeps_them():
    model = ActionScorer(4, (16, 16), torch.Generator().manual_seed(0))
    games = record(IdBandit(), model, 3000, seed=2, num_envs=250)
    assert games.behaviour and len(games) == games.steps == 3000
    with torch.no_grad():
        now = Loop(model).evaluate(games.obs, games.legal, games.choice)
        log_p, _ = Loop(model).log_probs(games.obs, games.legal)
    torch.testing.assert_close(games.log_prob, now.log_prob, rtol=0, atol=1e-6)
    assert (games.log_prob[games.legal.counts == 1] == 0).all()
    first = games.legal.offsets[:-1]
    expected, found = log_p[first].exp(), (games.choice == 0).float()
    spread = (expected * (1 - expected)).sum().sqrt()
    assert (expected.sum() - found.sum()).abs() < 4 * spread
    several = games.legal.counts == 20
    assert len(set(games.choice[several].tolist())) == 20


def test_the_same_arguments_give_the_same_games():
    model = ActionScorer(4, (8,), torch.Generator().manual_seed(0))
    one, twin = (record(IdBandit(), model, 40, seed=2) for _ in range(2))
    assert torch.equal(one.choice, twin.choice) and torch.equal(one.obs, twin.obs)
    other, by_evaluator = record(IdBandit(), model, 40, seed=3), record(IdBandit(), Loop(model), 40, seed=2)
    assert not torch.equal(one.obs, other.obs) and torch.equal(one.choice, by_evaluator.choice)


class BrokenOff:
    """Two games of three states, of which game 1 is truncated every second step; states are numbered."""

    name, num_envs, obs_size, alternating, device = "BrokenOff", 2, 1, False, torch.device("cpu")

    def reset(self) -> Position:
        self.now, self.age = [0.0, 100.0], [0, 0]
        return Position(torch.tensor(self.now)[:, None], pack([[1], [1, 2]]))

    def step(self, ids: torch.Tensor) -> GameStep:
        self.age = [age + 1 for age in self.age]
        led_to = torch.tensor([value + 1 for value in self.now])[:, None]
        over = [self.age[0] == 3, False]
        cut = [False, self.age[1] == 2]
        self.age = [0 if a or b else age for a, b, age in zip(over, cut, self.age, strict=True)]
        self.now = [value + (10 if a or b else 1) for a, b, value in zip(over, cut, self.now, strict=True)]
        obs = torch.tensor(self.now)[:, None]
        return GameStep(obs, pack([[1], [1, 2]]), torch.ones(2), torch.tensor(over), torch.tensor(cut), led_to)


class BrokenOffRules(Rules):
    def batched(self, num_envs: int, seed: int, device: str) -> BrokenOff:
        return BrokenOff()


def test_truncated_episodes_keep_where_they_led():
    games = record(BrokenOffRules(), last, 4, seed=0, num_envs=2)
    assert games.lengths.tolist() == [3, 2, 3, 2]
    assert games.obs[:, 0].tolist() == [0, 1, 2, 100, 101, 12, 13, 14, 111, 112]
    assert games.truncated.nonzero().flatten().tolist() == [4, 9]
    assert games.last_obs[:, 0].tolist() == [0, 102, 0, 113] and games.terminated.sum() == 2


def test_self_play_of_othello_can_be_played_again():
    """Every recorded state follows from the one before by the recorded action, and the winner's gain is the loser's loss."""
    games = record(Othello(4), RandomPlayer(3), 40, seed=1, num_envs=16)
    returns = games.returns()
    assert games.alternating and set(games.reward.tolist()) <= {-1.0, 0.0, 1.0}
    for e in range(len(games)):
        boards, (a, b) = othello.start(1, 4), games.bounds[e : e + 2].tolist()
        for row in range(a, b):
            one = games.legal.take(torch.tensor([row]))
            assert torch.equal(games.obs[row : row + 1], othello.features(boards))
            assert unpack(one) == unpack(othello.legal_actions(boards))
            boards = othello.play(boards, one.ids[games.choice[row]][None])
            assert row == b - 1 or returns[row] == -returns[row + 1]
        assert bool(othello.finished(boards)) and games.reward[b - 1] == -othello.lead(boards).sign()


def test_refusals():
    for name, arguments in (("episodes", {"episodes": 0}), ("num_envs", {"episodes": 1, "num_envs": 0})):
        with pytest.raises(EpisodeError, match=f"^{name}=0 is refused"):
            record(IdBandit(), last, seed=0, **arguments)
    with pytest.raises(EpisodeError, match="'nobody' cannot play"):
        record(IdBandit(), "nobody", 1, seed=0)
    with pytest.raises(EpisodeError, match="^game 2, step 0: the player took 12345, which is not legal"):
        record(IdBandit(), lambda obs, legal: last(obs, legal).index_fill(0, torch.tensor([2]), 12345), 4, seed=0)
