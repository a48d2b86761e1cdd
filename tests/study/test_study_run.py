"""Studies: tiny trainings that must pair up, and rows that say how they came about."""

import gymnasium
import numpy as np
import pytest

from rlbench import ConfigError, DQNConfig
from rlbench.results import append, load
from rlbench.study import plan, study

TINY = DQNConfig(
    total_timesteps=120,
    learning_starts=20,
    train_frequency=4,
    batch_size=8,
    hidden=(8,),
    buffer_size=64,
    eval_episodes=4,
    eval_frequency=40,
    log_frequency=30,
)


class Corridor(gymnasium.Env):
    """Four steps; action 1 earns 1, action 0 nothing: returns lie between 0 and 4, at random 2."""

    observation_space = gymnasium.spaces.Box(0, 4, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.at += 1
        return np.array([self.at], np.float32), float(action), self.at == 4, False, {}


def test_what_a_plan_did_not_know_of_the_env_is_barred_by_the_study():
    rows = study(plan("alone", TINY, slots=["loop"]), Corridor, seeds=[1], progress=False)
    reasons = {row["label"]: row["not_measured"] for row in rows}
    assert "batched counterpart" in reasons["loop=tensors"] and "batched counterpart" in reasons["loop=native"]
    assert reasons["plain"] is reasons["plain again"] is None


def test_a_row_has_what_the_trainer_used_and_changed():
    rows = study(plan("choices", TINY), Corridor, seeds=[1], progress=False)
    fast = next(row for row in rows if row["label"] == "fast")
    assert fast["changed"] == {"update": "native"}
    assert fast["choices"]["loop"] == "python" and "optimizer" not in fast["choices"]
    rows = study(plan("choices", TINY), "CartPole-v1", seeds=[1], progress=False)
    fast = next(row for row in rows if row["label"] == "fast")
    assert fast["changed"] == fast["choices"] == {"loop": "native"}


@pytest.fixture(scope="module")
def trained():
    seen = []
    made = plan("alone", TINY, slots=["replay", "transfer"], env=Corridor)
    rows = study(made, Corridor, seeds=[3, 8], progress=False, on_row=seen.append)
    assert seen == rows
    return rows


def test_every_seed_trains_every_variant_and_the_baseline_twice(trained):
    complete = [row for row in trained if row["not_measured"] is None]
    pairs = [(row["seed"], row["label"]) for row in complete]
    expected = ["plain", "plain again", "replay=deque", "replay=ring_torch"]
    assert sorted(pairs) == [(seed, label) for seed in (3, 8) for label in expected]
    assert [row["seed"] for row in complete] == [3] * 4 + [8] * 4  # seeds are the outer loop
    assert [row["position"] for row in complete] == [0, 1, 2, 3] * 2
    barred = [row for row in trained if row["not_measured"] is not None]
    assert [row["label"] for row in barred] == [
        "replay=ring_frames",
        "transfer=pinned",
        "transfer=pinned_non_blocking",
    ]
    assert all(row["sps"] is None for row in barred)


def test_a_row_says_how_it_came_about(trained):
    row = next(r for r in trained if r["label"] == "replay=deque" and r["seed"] == 8)
    assert row["kind"] == "training"
    assert row["changed"] == {"replay": "deque"}
    assert row["choices"]["replay"] == "deque"
    assert row["config"]["seed"] == 8 and row["seeds"] == [8]
    assert row["env_steps"] == 120 and row["eval_episodes"] == 4
    assert [step for step, _, _ in row["evaluations"]] == [40, 80, 120]
    assert row["quick"] is True and row["role"] == "variant" and row["statistical"] == []
    assert row["random_return"] is not None and row["threads"] >= 1


def test_bitwise_variants_learn_the_same_weights(trained):
    for seed in (3, 8):
        digests = {r["weights_sha256"] for r in trained if r["seed"] == seed}
        assert len(digests) == 1


def test_rows_survive_the_way_through_a_file(trained, tmp_path):
    from rlbench.study.summary import summarise

    path = append(tmp_path / "rows.jsonl", trained)
    for source in (trained, load(path)):
        summary = summarise(source)
        assert list(summary["label"])[:3] == ["plain", "plain again", "replay=deque"]
        assert list(summary["seeds"]) == [2, 2, 2, 2, 0, 0, 0]
        assert "bit for bit" in summary["learns"].iloc[2]
        assert summary["not_measured"].iloc[-1].startswith("transfer=")


def test_stopping_keeps_complete_trainings_only():
    made, seen, asked = plan("choices", TINY), [], []

    def should_stop():  # in the middle of the training after the first
        asked.extend(seen)
        return len(asked) > 1

    rows = study(made, Corridor, seeds=[1], progress=False, should_stop=should_stop, on_row=seen.append)
    assert 1 <= len(rows) < 4
    assert all(row["env_steps"] == 120 for row in rows)


@pytest.mark.parametrize("seeds", [[], [1, 1]])
def test_seeds_must_differ(seeds):
    with pytest.raises(ConfigError, match="different"):
        study(plan("choices", TINY), Corridor, seeds=seeds, progress=False)


def test_without_evaluation_there_is_no_word_on_learning():
    from rlbench.study import summarise

    config = TINY.replace(eval_episodes=0, eval_frequency=0)
    rows = study(plan("presets", config), Corridor, seeds=[1], progress=False, env_name="corridor")
    assert {row["env"] for row in rows} == {"corridor"}
    summary = summarise(rows)
    assert set(summary["learns"]) == {"not evaluated"}
    assert summary["return_iqm"].isna().all()


def test_a_stop_during_random_play_ends_the_study():
    calls = iter(range(1000))
    rows = study(plan("choices", TINY), Corridor, seeds=[1], progress=False, should_stop=lambda: next(calls) >= 2)
    assert rows == [] and next(calls) < 20
