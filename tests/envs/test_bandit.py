"""The bandit: both forms play the same episodes, and its optimum is what Python ints say."""

import numpy as np
import pytest
import torch

from rlbench.actions import ActionSets, pack, unpack
from rlbench.envs.bandit import IdBandit, OneBandit
from rlbench.envs.games import OneGame
from rlbench.models.action_scorer import ActionScorer
from rlbench.segments import log_softmax

SHAPES = [IdBandit(), IdBandit(1, 1, 1), IdBandit(3, 5, 5, 0.25), IdBandit(7, 1, 40, 2.0)]


def by_hand(game: IdBandit, context: int, action: int) -> float:
    """An id's reward from its binary digits, the least of them last."""
    weights = game.weights()[context].tolist()
    digits = f"{action:064b}"
    return 0.5 + sum(w * (1 if digits[63 - b] == "1" else -1) for b, w in enumerate(weights)) / 4096


@pytest.mark.parametrize("game", SHAPES, ids=str)
def test_both_forms_play_the_same_episodes(game):
    """Five episodes of six games, the last legal action each: bitwise."""
    many, ones = game.batched(6, seed=2**40 + 3), [game.one() for _ in range(6)]
    obs, legal = many.reset()
    for episode in range(5):
        for i, one in enumerate(ones):
            one.reset(2**40 + 3, episode, i)
        assert obs.tolist() == [one.features() for one in ones]
        assert unpack(legal) == [one.legal() for one in ones]
        step = many.step(legal.ids[legal.offsets[1:] - 1])
        rewards = [one.step(one.legal()[-1]) for one in ones]
        assert torch.equal(step.reward, torch.tensor([np.float32(reward) for reward, _ in rewards]))
        assert step.terminated.all() and not step.truncated.any() and all(over for _, over in rewards)
        assert torch.equal(step.next_obs, obs) and all(one.legal() == [] for one in ones)
        obs, legal = step.obs, step.legal


def test_a_game_does_not_depend_on_how_many_there_are():
    few, more = IdBandit().batched(2, 9).reset(), IdBandit().batched(50, 9).reset()
    assert torch.equal(few.obs, more.obs[:2]) and unpack(few.legal) == unpack(more.legal)[:2]


def test_states_are_what_the_arguments_say():
    obs, legal = IdBandit(contexts=3, least=2, most=6).batched(3000, 1).reset()
    assert obs.shape == (3000, 3) and obs.dtype == torch.float32 and (obs.sum(1) == 1).all()
    assert (obs.mean(0) - 1 / 3).abs().max() < 0.04
    counts = torch.bincount(legal.counts, minlength=7)
    assert counts[:2].sum() == 0 and (counts[2:] / 3000 - 0.2).abs().max() < 0.03
    ids = np.array([value for state in unpack(legal) for value in state], np.uint64)
    shares = [float(((ids >> np.uint64(b)) & np.uint64(1)).mean()) for b in range(64)]
    assert all(0.47 < share < 0.53 for share in shares), shares  # bit 63 like all others
    assert len(np.unique(ids)) == len(ids)


def test_rewards_are_those_of_the_bits_to_the_last_one():
    """Ids whose bits lie at the ends, in every context, in Python ints, by tensors and through a step."""
    game = IdBandit()
    ids = [0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]
    for context in range(4):
        obs = torch.nn.functional.one_hot(torch.tensor([context]), 4).float()
        expected = [by_hand(game, context, action) for action in ids]
        assert game.expected(obs, pack([ids])).tolist() == expected  # multiples of 1/4096: exact in float32
        assert expected[0] + expected[-1] == 1.0  # opposite bits
    obs, legal = game.batched(40, 5).reset()
    step = game.batched(40, 5)
    step.reset()
    taken = step.step(legal.ids[legal.offsets[:-1]]).reward.tolist()
    contexts = obs.argmax(1).tolist()
    assert taken == [by_hand(game, c, state[0]) for c, state in zip(contexts, unpack(legal), strict=True)]


def test_nearly_all_rewards_lie_between_0_and_1():
    obs, legal = IdBandit().batched(5000, 3).reset()
    reward = IdBandit().expected(obs, legal)
    assert ((reward >= 0) & (reward <= 1)).float().mean() > 0.995
    assert abs(float(reward.mean()) - 0.5) < 0.01 and 0.12 < float(reward.std()) < 0.16


def test_noise_has_the_mean_0_and_its_bounds():
    plain, noisy = IdBandit(noise=0.0).batched(4000, 1), IdBandit(noise=0.5).batched(4000, 1)
    ids = [envs.reset().legal for envs in (plain, noisy)]
    first = ids[0].ids[ids[0].offsets[:-1]]
    off = noisy.step(first).reward - plain.step(first).reward
    assert off.abs().max() <= 0.5 and off.abs().max() > 0.49 and off.mean().abs() < 0.02
    assert not torch.equal(off[:-1], off[1:])


def test_best_is_the_first_of_the_largest_and_moves_with_its_list():
    game = IdBandit(contexts=2, most=9)
    obs, legal = game.batched(200, 4).reset()
    lists, contexts = unpack(legal), obs.argmax(1).tolist()
    for turned in (lists, [ids[::-1] for ids in lists]):
        best = game.best(obs, pack(turned)).tolist()
        for context, ids, place in zip(contexts, turned, best, strict=True):
            rewards = [by_hand(game, context, action) for action in ids]
            assert place == rewards.index(max(rewards))
    assert game.best(torch.tensor([[1.0, 0.0]]), pack([[7, 7, 7]])).tolist() == [0]


def test_share_of_the_optimum():
    game = IdBandit()

    def best(obs, legal):
        return legal.ids[legal.offsets[:-1] + game.best(obs, legal)]

    def first(obs, legal):
        return legal.ids[legal.offsets[:-1]]

    assert game.optimum_share(best, states=500) == 1.0
    obs, legal = game.batched(500, 3).reset()
    pairs = list(zip(obs.argmax(1).tolist(), unpack(legal), strict=True))
    top = sum(max(by_hand(game, c, a) for a in ids) for c, ids in pairs)
    share = sum(by_hand(game, c, ids[0]) for c, ids in pairs) / top
    assert game.optimum_share(first, states=500, seed=3) == pytest.approx(share, rel=1e-12) and share < 0.8
    assert IdBandit(most=1).optimum_share(first, states=50) == 1.0  # nothing to choose
    noisy = IdBandit(noise=3.0)
    assert noisy.optimum_share(first, states=500, seed=3) == pytest.approx(share, rel=1e-12)
    with pytest.raises(ValueError, match=r"^state 2: the policy took an id that is not legal"):
        game.optimum_share(lambda obs, legal: first(obs, legal).index_fill(0, torch.tensor([2]), 12345), states=5)


def test_a_scorer_learns_it():
    """Policy gradient with the exact expectation over each state's actions, a fresh batch a step."""
    game, torch_rng = IdBandit(contexts=2, most=8), torch.Generator().manual_seed(0)
    model = ActionScorer(2, (64, 64), torch_rng)
    optimizer, envs = torch.optim.Adam(model.parameters(), lr=3e-3), game.batched(256, 1)
    obs, legal = envs.reset()

    def scores(obs: torch.Tensor, legal: ActionSets) -> torch.Tensor:
        states = legal.states()
        return log_softmax(model.scores(model.states(obs)[0][states], legal.ids), states, len(obs))

    for _ in range(250):
        loss = -(scores(obs, legal).exp() * (game.expected(obs, legal) - 0.5)).sum() / 256
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step = envs.step(legal.ids[legal.offsets[:-1]])
        obs, legal = step.obs, step.legal

    @torch.no_grad()
    def greedy(obs: torch.Tensor, legal: ActionSets) -> torch.Tensor:
        parts = scores(obs, legal).split(legal.counts.tolist())
        return legal.ids[legal.offsets[:-1] + torch.stack([part.argmax() for part in parts])]

    assert game.optimum_share(greedy, states=1000, seed=5) > 0.99


def test_one_game_refuses_what_is_not_legal():
    one = OneBandit(IdBandit())
    assert isinstance(one, OneGame)
    with pytest.raises(ValueError, match="the id 5 is not legal"):
        one.step(5)
    one.step(one.legal()[0])
    with pytest.raises(ValueError, match="legal are \\[\\]"):
        one.step(0)


@pytest.mark.parametrize(
    "arguments",
    [{"contexts": 0}, {"least": 0}, {"least": 3, "most": 2}, {"most": 2.0}, {"noise": -1.0}, {"noise": float("nan")}],
)
def test_refused_arguments(arguments):
    name = "most" if arguments == {"least": 3, "most": 2} else next(iter(arguments))
    with pytest.raises(ValueError, match=f"^{name}=.* is refused"):
        IdBandit(**arguments)


def test_rules_say_what_a_game_must():
    game = IdBandit(contexts=5)
    assert (game.name, game.obs_size, game.alternating, dict(game.opponents)) == ("IdBandit", 5, False, {})
    assert "no native code" in game.why_not_native() and game == IdBandit(5) and hash(game) == hash(IdBandit(5))
