import json

import pytest
import torch

from rlbench import SPEEDUPS, Choices, DQNConfig, PPOConfig
from rlbench.envs.othello import Othello
from rlbench.envs.source import env_source
from rlbench.speedups.choices import ChoiceError
from rlbench.tuning import agreement, tune
from rlbench.tuning.candidates import Space
from rlbench.tuning.search import _Search
from rlbench.tuning.text import document, save_choices, summary

CPU = torch.device("cpu")
DQN_SMALL = DQNConfig(hidden=(8,), batch_size=8, learning_starts=32, total_timesteps=4000, log_frequency=200)
PPO_SMALL = PPOConfig(hidden=(8,), num_envs=2, num_steps=8, batch_size=8, total_timesteps=4000)


@pytest.mark.parametrize(
    ("config", "env"), [(DQN_SMALL, "CartPole-v1"), (PPO_SMALL, "CartPole-v1"), (PPO_SMALL, Othello(4))]
)
def test_nothing_invalid_is_ever_a_candidate(config, env):
    source = env_source(env)
    space = Space(config, source, CPU)
    frontier, seen = [space.plain], set()
    for _ in range(2):
        found = [choices for at in frontier for slot in space.slots for choices in space.neighbours(at, slot)]
        for choices in found:
            choices.check(config.trainer, config, CPU, source)
            changed = space.candidate(choices, 1).changed
            assert not {("metrics", "item_each_step"), ("precision", "bfloat16")} & set(changed.items())
        frontier = list(dict.fromkeys(found))[:6]
        seen |= set(found)
    assert len(seen) > 5


def test_slots_that_are_not_there_are_refused():
    with pytest.raises(ChoiceError, match="gae"):
        Space(DQN_SMALL, env_source("CartPole-v1"), CPU, slots=["gae"])


@pytest.mark.parametrize(
    ("config", "env", "slots"),
    [(DQN_SMALL, "CartPole-v1", ["optimizer", "replay"]), (PPO_SMALL, Othello(4), ["evaluate", "optimizer"])],
)
def test_a_small_search_on_real_trainings(tmp_path, config, env, slots):
    tuned = tune(config, env, device="cpu", budget_s=4, slots=slots, threads=[1], block_s=0.03, progress=False)
    changed = tuned.choices.explicit
    assert changed <= set(slots) and tuned.threads == torch.get_num_threads() and tuned.distance <= agreement.MOST
    assert tuned.final.rounds > 0 and len(tuned.rows) == len(tuned.standings) + 1
    assert all(row["kind"] == "tune" for row in tuned.rows)
    path = tmp_path / "choices.yaml"
    save_choices(tuned, path, env_source(env))
    source = env_source(env)
    assert Choices.load(path).in_use(config, CPU, source) == tuned.choices.in_use(config, CPU, source)
    assert path.read_text().startswith("# Found by `rlbench tune")
    json.dumps(document(tuned)["choices"])
    assert "plain()" in summary(tuned)


def test_what_learns_something_else_is_rejected(monkeypatch):
    space = Space(DQN_SMALL, env_source("CartPole-v1"), CPU, slots=["optimizer"])
    monkeypatch.setattr("rlbench.tuning.search.distance", lambda *args: 0.5)
    from rlbench.progress import Progress

    with Progress(1, "t", "s", False) as bar:
        search = _Search(space, "CartPole-v1", 1.0, 0.02, bar, lambda: False, 0, False)
        fused = space.candidate(space.plain.replace(optimizer="fused"), 1)
        tuned = search._finish([fused], False)
    assert tuned.rejected == [("optimizer=fused", 0.5)] and tuned.choices == space.plain
    assert "Nothing was found" in summary(tuned) and "rejected" in summary(tuned)


def test_the_same_network_is_no_distance_apart_and_another_one_is():
    plain = Choices.plain()
    assert agreement.distance(DQN_SMALL, plain, plain, "CartPole-v1", "cpu") == 0.0
    close = agreement.distance(DQN_SMALL, plain.replace(optimizer="fused"), plain, "CartPole-v1", "cpu")
    assert close < 1e-3
    other = agreement.weights_after(agreement.short(DQN_SMALL.replace(seed=2)), plain, "CartPole-v1", "cpu")[1]
    start, own = agreement.weights_after(agreement.short(DQN_SMALL), plain, "CartPole-v1", "cpu")
    assert ((other - own).norm() / (own - start).norm()).item() > agreement.MOST


def test_a_search_that_is_stopped_gives_what_it_has():
    tuned = tune(
        DQN_SMALL,
        "CartPole-v1",
        device="cpu",
        budget_s=1,
        slots=["optimizer"],
        block_s=0.02,
        progress=False,
        should_stop=lambda: True,
    )
    assert tuned.interrupted and set(tuned.choices.to_dict()) == set(SPEEDUPS)
