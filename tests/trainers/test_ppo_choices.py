"""PPO: every choice learns what plain() learns, each alone, and every pair of them in some combination."""

import itertools
import random

import gymnasium
import numpy as np
import pytest
import torch

from rlbench import SPEEDUPS, Choices, PPOConfig
from rlbench.envs.othello import Othello
from rlbench.envs.source import env_source
from rlbench.speedups.choices import ChoiceError
from rlbench.trainers.ppo import PPO

CPU = torch.device("cpu")
SMALL = PPOConfig(
    total_timesteps=180,
    num_envs=5,
    num_steps=12,
    batch_size=21,
    update_epochs=2,
    learning_rate=1e-3,
    hidden=(16, 12),
    eval_episodes=0,
    log_frequency=60,
)
GAME, REPLYING = Othello(4), Othello(4, opponent="greedy", opening_plies=3)


class Masked(gymnasium.Env):
    """Five actions, of which those below `at` are illegal; a reward for the highest, an end after four steps."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(5)

    def _seen(self):
        return np.full(3, self.at / 5, np.float32), {"action_mask": np.arange(5) >= self.at}

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return self._seen()

    def step(self, action):
        assert action >= self.at, "an illegal action was chosen"
        self.at = (self.at + 1) % 5
        obs, info = self._seen()
        return obs, float(action == 4), self.at == 0, False, info


ENVS = {"game": GAME, "opponent": REPLYING, "cart": "CartPole-v1", "masked": Masked}
SOURCES = {name: env_source(env) for name, env in ENVS.items()}
COMPILES = {("evaluate", "packed_compiled"), ("gae", "compiled"), ("ppo_update", "compiled")}
PROCESSES = {("environments", "async")}
BITS = {"bfloat16", "float16_scaled"}  # which differ by more than rounding
plain_runs: dict[str, tuple] = {}


def run(choices, env, config=SMALL):
    """(trainer, history, the first rollout, the first weights)"""
    trainer = PPO(config, choices, ENVS[env])
    before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    rollouts, collect = [], trainer.rollouts.collect

    def noting(*given):
        rollouts.append(collect(*given))
        return rollouts[-1]

    trainer.rollouts.collect = noting
    history = trainer.train(progress=False)
    trainer.close()
    return trainer, history, rollouts[0], before


def plain(env):
    if env not in plain_runs:
        plain_runs[env] = run(Choices.plain(), env)
    return plain_runs[env]


def moves_alike(chosen, one, other, before):
    """How far the parameters have moved differs by a small share of its length. Adam moves a parameter by the step size even
    where its gradient is rounding alone, as for a unit that is on for all actions of a state: it is not asked of each by itself.
    """
    if {SPEEDUPS[slot].sameness for slot in chosen} == {"bitwise"} and chosen.get(
        "minibatch"
    ) != "by_count":  # other sums
        assert other.weights_sha256 == one.weights_sha256
    ours, theirs = (
        torch.cat([(h.weights[name] - start).flatten() for name, start in before.items()]) for h in (other, one)
    )
    assert torch.isfinite(ours).all()
    assert (ours - theirs).norm() <= (0.5 if BITS & set(chosen.values()) else 0.05) * theirs.norm()


def agrees(chosen, env="game"):
    """Train with `chosen` and with plain(), and compare."""
    _, reference, first, before = plain(env)
    trainer, history, rollout, start = run(Choices(**chosen), env)
    assert set(chosen.items()) <= set(history.choices.items())
    assert all(torch.equal(before[name], start[name]) for name in before)
    assert (history.env_steps, history.updates) == (reference.env_steps, reference.updates)
    assert reference.updates == 18 and trainer.iterations == 3  # 60 samples in 3 minibatches of 20, twice, three times
    assert history.recompiles == 0 and (history.skipped_updates == 0 or chosen.get("precision") == "float16_scaled")
    for name in ("obs", "choice", "reward", "terminated", "truncated"):  # under the same weights, the same episodes
        torch.testing.assert_close(getattr(rollout, name), getattr(first, name), rtol=0, atol=1e-6)
    for name in ("log_prob", "value", "next_value"):
        torch.testing.assert_close(getattr(rollout, name), getattr(first, name), rtol=1e-5, atol=1e-5)
    if not BITS & set(chosen.values()):
        assert list(history.episodes.episode_return) == list(reference.episodes.episode_return)
        assert history.to_frame().first_ratio_error.max() < 1e-5
    moves_alike(chosen, reference, history, before)


def alone(env, only=None):
    return [
        pytest.param(env, slot, variant, marks=[pytest.mark.slow] if (slot, variant) in COMPILES | PROCESSES else [])
        for slot, speedup in SPEEDUPS.items()
        if "ppo" in speedup.workloads and (only is None or slot in only)
        for variant in speedup.variants
        if speedup.requires(variant, None, None, CPU, SOURCES[env]) is None
    ]


@pytest.mark.parametrize(
    ("env", "slot", "variant"),
    [
        *alone("game"),
        *alone("cart"),
        *alone("opponent", ("games", "evaluate", "ppo_update")),
        *alone("masked", ("environments", "precision", "minibatch", "ppo_update")),
    ],
)
def test_each_choice_alone_learns_what_plain_learns(env, slot, variant):
    agrees({slot: variant}, env)


@pytest.mark.parametrize("env", ENVS)
def test_named_choices_learn_what_plain_learns(env):
    _, reference, _, before = plain(env)
    for named in (Choices.naive(), Choices.fast()):
        _, history, rollout, _ = run(named, env)
        assert torch.equal(rollout.choice, plain(env)[2].choice) and history.updates == reference.updates
        moves_alike({"evaluate": "loop"}, reference, history, before)
    used = Choices.fast().in_use(SMALL, CPU, SOURCES[env])
    assert ("evaluate" in used) == (env in ("game", "opponent"))


@pytest.mark.parametrize("env", ["game", "opponent"])
def test_every_way_to_step_games_has_the_same_episodes(env):
    """Bit by bit: the same weights, and so the same moves to the end."""
    longer = SMALL.replace(total_timesteps=600)
    runs = [run(Choices(games=games), env, longer) for games in SPEEDUPS["games"].variants]
    columns = ["env_step", "episode_return", "length"]
    episodes = [history.episodes[columns].to_numpy().tolist() for _, history, *_ in runs]
    assert len(episodes[0]) > 25 and episodes[0] == episodes[1] == episodes[2]
    assert len({history.weights_sha256 for _, history, *_ in runs}) == 1


def usable_part(chosen):
    """What of a full set of variants a trainer would use; nothing where two of them do not go together."""
    used = Choices(**chosen).in_use(SMALL, CPU, SOURCES["game"])
    try:
        Choices(**used).check("ppo", SMALL, CPU, SOURCES["game"])
    except ChoiceError:
        return {}
    return used


def covering(left_out, samples=1500):
    """Combinations in which every two variants that go together come together at least once (greedily chosen)."""
    rng = random.Random(1)
    offered = {
        slot: [
            v
            for v in s.variants
            if (slot, v) not in left_out and s.requires(v, None, None, CPU, SOURCES["game"]) is None
        ]
        for slot, s in SPEEDUPS.items()
        if "ppo" in s.workloads
    }
    offered = {slot: variants for slot, variants in offered.items() if variants}
    pool = []
    for _ in range(samples):
        used = usable_part({slot: rng.choice(variants) for slot, variants in offered.items()})
        if used:
            pool.append((used, set(itertools.combinations(sorted(used.items()), 2))))
    open_pairs, chosen = set().union(*(pairs for _, pairs in pool)), []
    while open_pairs:
        used, pairs = max(pool, key=lambda entry: len(entry[1] & open_pairs))
        chosen.append(used)
        open_pairs -= pairs
    return chosen


PAIRS = covering(COMPILES)


def test_the_covering_set_is_small():
    assert 20 <= len(PAIRS) <= 60


@pytest.mark.parametrize("chosen", PAIRS, ids=lambda chosen: "-".join(chosen.values()))
def test_every_two_choices_together_learn_what_plain_learns(chosen):
    agrees(chosen)


@pytest.mark.slow
def test_every_two_choices_together_those_that_compile_included(monkeypatch):
    monkeypatch.setattr("rlbench.compile.BACKEND", "eager")  # traced and guarded as ever, but nothing is generated
    for chosen in covering(set()):
        if COMPILES & set(chosen.items()):
            agrees(chosen)
