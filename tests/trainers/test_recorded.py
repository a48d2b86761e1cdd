"""Training on recorded games: advantages, ratios, what is learnt, and the same by every choice."""

import copy
import math

import numpy as np
import pytest
import torch

from rlbench import Choices, PPOConfig
from rlbench.config import ConfigError
from rlbench.envs.bandit import IdBandit
from rlbench.episodes import EpisodeError, Episodes, record
from rlbench.evaluations.loop import Loop
from rlbench.models.action_scorer import ActionScorer
from rlbench.speedups import SPEEDUPS, ChoiceError
from rlbench.trainers.recorded import RecordedTraining, train_on_episodes

WAYS = pytest.mark.parametrize("batch_by", ["shuffled", "grouped", "bucketed"])


def games(
    lengths: list[int], alternating: bool = False, truncated: tuple[int, ...] = (), log_probs: bool = True
) -> Episodes:
    """Random episodes with 1 to 9 actions a state; `truncated` names those that were broken off."""
    rng, out = np.random.default_rng(4), []
    for e, length in enumerate(lengths):
        steps = []
        for t in range(length):
            ids = rng.integers(0, 2**64, rng.integers(1, 10), np.uint64)
            step = {"features": rng.normal(size=3), "legal": ids, "action": ids[0], "reward": rng.normal()}
            cut = {"truncated": True, "next_features": rng.normal(size=3)} if e in truncated and t == length - 1 else {}
            steps.append({**step, **cut, **({"log_prob": -rng.random()} if log_probs else {})})
        out.append(steps)
    return Episodes.from_lists(out, alternating=alternating)


def scorer(obs_size: int = 3, seed: int = 0) -> ActionScorer:
    return ActionScorer(obs_size, (16, 16), torch.Generator().manual_seed(seed))


def weights(model: ActionScorer) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("alternating", [False, True])
def test_advantages_are_those_of_each_episode_alone(alternating):
    lengths, config = [4, 1, 9, 2, 3, 3], PPOConfig(gamma=0.9, gae_lambda=0.8)
    episodes, model = games(lengths, alternating, truncated=(1, 2)), scorer()
    samples = RecordedTraining(model, episodes, config).learnable()
    value, led_to = (model.states(obs)[1].tolist() for obs in (episodes.obs, episodes.last_obs))
    turn, expected = -1.0 if alternating else 1.0, []
    for e in range(len(lengths)):
        a, b = episodes.bounds[e : e + 2].tolist()
        after, advantage, found = led_to[e] if bool(episodes.truncated[b - 1]) else 0.0, 0.0, []
        for row in reversed(range(a, b)):
            delta = float(episodes.reward[row]) + 0.9 * turn * after - value[row]
            advantage = delta + 0.9 * 0.8 * turn * advantage
            after = value[row]
            found.append(advantage)
        expected += found[::-1]
    assert samples.advantage.tolist() == pytest.approx(expected, abs=1e-5)
    assert samples.target.tolist() == pytest.approx([a + v for a, v in zip(expected, value, strict=True)], abs=1e-5)
    assert samples.value.tolist() == pytest.approx(value, abs=1e-6) and not samples.advantage.requires_grad


@WAYS
@pytest.mark.parametrize("make", [lambda: games([5, 1, 8, 3], True), lambda: record(IdBandit(3), scorer(), 70, 1)])
def test_first_ratio_is_1_where_log_probs_are_recomputed(batch_by, make):
    episodes, config = make(), PPOConfig(old_log_probs="recomputed", update_epochs=2, batch_size=8, learning_rate=1e-3)
    frame = train_on_episodes(scorer(), episodes, config, epochs=6, batch_by=batch_by, progress=False).to_frame()
    assert frame["renewed"].tolist() == [True, False] * 3
    assert (frame["first_ratio_error"][::2] <= 1e-5).all() and (frame["approx_kl"][1::2] > 1e-7).all()


def test_first_ratio_is_that_to_the_behaviour_where_log_probs_are_stored():
    episodes, model = games([5, 1, 8, 3]), scorer()
    with torch.no_grad():
        now = Loop(model).evaluate(episodes.obs, episodes.legal, episodes.choice).log_prob
    error = max(abs(math.exp(a - b) - 1) for a, b in zip(now.tolist(), episodes.log_prob.tolist(), strict=True))
    frame = train_on_episodes(model, episodes, PPOConfig(), epochs=1, progress=False).to_frame()
    assert frame["first_ratio_error"][0] == pytest.approx(error, rel=1e-4) and error > 0.1


@WAYS
def test_own_games_have_the_ratio_1(batch_by):
    """What a policy recorded itself is on-policy: its stored log-probabilities are those of now."""
    model = scorer(4)
    episodes = record(IdBandit(), model, 200, seed=3)
    frame = train_on_episodes(
        model, episodes, PPOConfig(batch_size=64), epochs=1, batch_by=batch_by, progress=False
    ).to_frame()
    assert frame["first_ratio_error"][0] <= 1e-5


def test_rows_count_and_the_step_size_falls():
    episodes = games([5, 1, 8, 3])
    config = PPOConfig(batch_size=6, learning_rate=0.01, update_epochs=3)
    history = train_on_episodes(scorer(), episodes, config, epochs=4, progress=False)
    frame = history.to_frame()
    assert frame["epoch"].tolist() == [1, 2, 3, 4] and frame["minibatches"].tolist() == [3] * 4  # 17 samples: 6 + 6 + 5
    assert frame["learning_rate"].tolist() == pytest.approx([0.01, 0.0075, 0.005, 0.0025])
    assert frame["renewed"].tolist() == [True, False, False, True]
    assert (frame[["seconds", "episodes_per_s", "samples_per_s"]] > 0).all(axis=None)
    assert (frame["samples_per_s"] / frame["episodes_per_s"]).tolist() == pytest.approx([17 / 4] * 4)
    summary = history.summary()
    assert (summary["epochs"], summary["updates"], summary["episodes"], summary["samples"]) == (4, 12, 4, 17)
    assert summary["loss"] == frame["loss"][3] and summary["compile_s"] == 0 and not summary["interrupted"]
    assert history.train_s == pytest.approx(frame["seconds"].sum())
    steady = train_on_episodes(scorer(), episodes, config.replace(anneal_lr=False), epochs=2, progress=False)
    assert steady.to_frame()["learning_rate"].tolist() == [0.01, 0.01]


def test_target_kl_ends_a_round():
    config = PPOConfig(old_log_probs="recomputed", update_epochs=10, learning_rate=0.05, batch_size=4, target_kl=1e-4)
    frame = train_on_episodes(scorer(), games([5, 1, 8, 3]), config, epochs=4, progress=False).to_frame()
    assert (frame["approx_kl"] > 1e-4).all() and frame["renewed"].all()


def test_a_bandit_is_learnt_from_games_of_an_untrained_policy():
    """Its optimum is known: the player earns 0.7 of it."""
    game = IdBandit(contexts=2, most=8)
    model = scorer(2)
    episodes = record(game, model, 4000, seed=1)

    @torch.no_grad()
    def greedy(obs, legal):
        log_p, _ = Loop(model).log_probs(obs, legal)
        return legal.ids[
            legal.offsets[:-1] + torch.stack([part.argmax() for part in log_p.split(legal.counts.tolist())])
        ]

    before = game.optimum_share(greedy, 500, seed=9)
    config = PPOConfig(learning_rate=5e-3, batch_size=256, update_epochs=20, seed=2)
    history = train_on_episodes(model, episodes, config, epochs=20, progress=False)
    assert before < 0.9 < game.optimum_share(greedy, 500, seed=9)
    assert history.to_frame()["value_loss"].iloc[-1] < history.to_frame()["value_loss"][0]


def test_the_same_seed_gives_the_same_weights():
    def trained(seed: int, batch_by: str = "shuffled") -> torch.Tensor:
        model = scorer()
        train_on_episodes(
            model, games([5, 1, 8, 3]), PPOConfig(seed=seed, batch_size=4), batch_by=batch_by, progress=False
        )
        return weights(model)

    assert torch.equal(trained(1), trained(1)) and not torch.equal(trained(1), trained(2))
    assert not torch.equal(trained(1), trained(1, "grouped"))


VARIANTS = [
    ("minibatch", "stack_samples", 0.0),
    ("minibatch", "copies", 0.0),
    ("minibatch", "by_count", 1e-2),
    ("gae", "loop", 1e-2),
    ("gae", "scan", 1e-2),
    ("evaluate", "loop", 1e-2),
    ("evaluate", "grouped", 1e-2),
    ("evaluate", "same_count_or_loop", 1e-2),
    ("evaluate", "padded", 1e-2),
    ("evaluate", "padded_softmax", 1e-2),
    ("evaluate", "packed_native", 1e-2),
    ("ppo_update", "native", 1e-2),
    ("action_encoding", "loop", 1e-2),
    ("action_encoding", "byte_table", 1e-2),
    ("old_log_probs", "recompute_loop", 1e-2),
    ("old_log_probs", "recompute_grouped", 1e-2),
    ("metrics", "item_each_step", 0.0),
]


@pytest.mark.parametrize(("slot", "variant", "tolerance"), VARIANTS)
def test_every_choice_learns_the_same(slot, variant, tolerance):
    """Bit by bit, or but for rounding: of gradients that are nothing else Adam makes steps in any direction, so that the
    movement is judged by its length.
    """
    config, start = PPOConfig(old_log_probs="recomputed", batch_size=8, learning_rate=1e-3), weights(scorer())
    if reason := SPEEDUPS[slot].requires(variant, None, config, torch.device("cpu"), None):
        pytest.skip(reason)
    moved = []
    base = Choices(old_log_probs="recompute_packed")
    for choices in (base, base.replace(**{slot: variant})):
        model = scorer()
        train_on_episodes(model, games([5, 1, 8, 3], True), config, choices, epochs=3, progress=False)
        moved.append(weights(model) - start)
    assert (moved[0] - moved[1]).norm() <= tolerance * moved[0].norm() and moved[0].abs().max() > 1e-3


def test_training_goes_on_where_it_was_and_can_be_stopped():
    episodes, config = games([5, 1, 8, 3]), PPOConfig(anneal_lr=False, update_epochs=1)
    one, two = RecordedTraining(scorer(), episodes, config), RecordedTraining(scorer(), episodes, config)
    one.train(4, progress=False)
    two.train(1, progress=False)
    two.train(3, progress=False)
    assert torch.equal(weights(one.model), weights(two.model))
    two.stop()
    history = two.train(3, progress=False)
    assert history.interrupted and not history.rows and history.summary()["epochs"] == 0
    assert len(two.train(1, progress=False).rows) == 1


def test_refusals():
    episodes, model = games([2, 3]), scorer()
    before = copy.deepcopy(model.state_dict())
    for arguments, error, message in [
        ({"epochs": 0}, ConfigError, "epochs=0 is refused"),
        ({"batch_by": "count"}, ConfigError, "batch_by='count' is refused; accepted: shuffled, grouped, bucketed"),
        ({"config": {}}, ConfigError, "config must be a PPOConfig"),
        ({"model": torch.nn.Linear(3, 1)}, ConfigError, "model must be an ActionScorer"),
        ({"model": scorer(5)}, EpisodeError, "states have 3 features, and the model takes 5"),
        ({"episodes": []}, EpisodeError, "list are no Episodes"),
        ({"episodes": episodes[:0]}, EpisodeError, "there are no episodes"),
        ({"episodes": games([2], log_probs=False)}, EpisodeError, "accepted with them: old_log_probs='recomputed'"),
        ({"choices": "fast"}, ChoiceError, "choices must be a Choices"),
        ({"choices": Choices(old_log_probs="recompute_packed")}, ChoiceError, "would be ignored"),
        ({"choices": Choices(games="batched")}, ChoiceError, "recorded games are not played again"),
        ({"choices": Choices(replay="deque")}, ChoiceError, "ppo has no such slot"),
        (
            {"choices": Choices(old_log_probs="stored"), "config": PPOConfig(old_log_probs="recomputed")},
            ChoiceError,
            "old_log_probs='stored' cannot be used",
        ),
    ]:
        with pytest.raises(error, match=message):
            train_on_episodes(**{"model": model, "episodes": episodes, "progress": False, **arguments})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    fixed = games([2], log_probs=False)
    assert train_on_episodes(model, fixed, PPOConfig(old_log_probs="recomputed"), epochs=1, progress=False).rows
