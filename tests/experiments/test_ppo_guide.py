"""The measured guide: what is changed, what the rows say, and a table worked out by hand."""

import math

import pytest

from rlbench import Choices, ConfigError, PPOConfig
from rlbench.experiments import ppo_guide

SMALL = {"num_envs": 4, "num_steps": 4, "batch_size": 8, "hidden": (8,), "update_epochs": 2}


def test_the_base_ends_after_whole_rounds_of_the_longest_kind():
    """4 · 4 · 4 = 64 env steps: 100 are rounded up to 128; a look every 128 / 8."""
    rules, config = ppo_guide.settings("othello4", steps=100, **SMALL)
    assert (config.total_timesteps, config.eval_frequency, config.anneal_lr) == (128, 16, False)
    assert rules.opening_plies == 4
    rules, config = ppo_guide.settings("bandit", quick=True)
    assert (rules.name, config.num_envs, config.anneal_lr) == ("IdBandit", 32, False)
    with pytest.raises(ConfigError, match="chess.*othello"):
        ppo_guide.settings("chess")


def test_one_setting_is_changed_at_a_time():
    base = PPOConfig(batch_size=256, num_steps=128, hidden=(64, 64), total_timesteps=5_000, anneal_lr=False)
    made = ppo_guide.changes(base, quick=True)
    assert list(made) == [
        "batch_size=64", "batch_size=1024", "num_steps=32", "num_steps=512", "update_epochs=1", "update_epochs=8",
        "hidden=32,32", "hidden=256,256", "preset fast",
    ]  # fmt: skip
    for axis, config in made.values():
        if axis != "preset":
            assert config != base and config.replace(**{axis: getattr(base, axis)}) == base
    fast = made["preset fast"][1]
    assert (fast.num_steps, fast.total_timesteps, fast.anneal_lr) == (40, 5_000, False)
    assert {axis for axis, _ in ppo_guide.changes(base).values()} == set(ppo_guide.AXES)


def test_a_row_says_what_was_changed():
    own = {"steps": 64, "seeds": [3], "axes": ["update_epochs"], "choices": Choices.plain(), "quick": True}
    rows = ppo_guide.guide("bandit", **own, progress=False, eval_episodes=4, **SMALL)
    assert {(row["label"], row["axis"], row["value"]) for row in rows} == {
        ("base", "base", ""), ("base again", "base", ""),
        ("update_epochs=1", "update_epochs", "1"), ("update_epochs=8", "update_epochs", "8"),
    }  # fmt: skip
    assert {row["env_steps"] for row in rows} == {64} and {row["game"] for row in rows} == {"bandit"}
    updates = {row["label"]: row["updates"] for row in rows}  # 4 rounds of 16 samples in minibatches of 8
    assert (updates["base"], updates["update_epochs=1"], updates["update_epochs=8"]) == (16, 8, 64)
    table = ppo_guide.table(rows)
    assert list(table["label"]) == ["base", "update_epochs=1", "update_epochs=8"]
    assert set(table["steps_verdict"]) == {"too few seeds"}


def test_an_unknown_axis_is_named():
    with pytest.raises(ConfigError, match=r"depth.*batch_size, num_steps"):
        ppo_guide.guide("bandit", axes=["depth"])


def test_returns_lie_on_a_line_between_evaluations():
    row = {"random_return": -1.0, "evaluations": [[10, 2.0, 0.0], [20, 4.0, 3.0]]}
    found = [ppo_guide.return_at(row, seconds) for seconds in (0.0, 1.0, 2.0, 3.0, 9.0)]
    assert found == [-1.0, -0.5, 0.0, 1.5, 3.0]


def made_row(label, axis, rung, seed, train_s, value, role="variant"):
    """A training that stands at half its value after half its time."""
    return {
        "kind": "training", "study": "s", "mode": "guide", "machine": "m", "device": "cpu", "env": "e", "label": label,
        "baseline": "base", "axis": axis, "value": label, "rung": rung, "seed": seed, "role": role, "train_s": train_s,
        "total_s": train_s, "compile_s": 0.0, "sps": 100 / train_s, "mean_return": value, "random_return": 0.0,
        "weights_sha256": f"{label}{seed}", "evaluations": [[50, train_s / 2, value / 2], [100, train_s, value]],
        "not_measured": None, "updates": 10,
    }  # fmt: skip


def test_the_table_by_hand():
    """The base reaches 4 in 2 s. `wide` reaches 6 in 4 s, so 3 in 2 s; `small` 3 in 1 s, when the base stands at 2."""
    rows = []
    for seed in range(6):
        rows += [
            made_row("base", "base", 0, seed, 2.0, 4.0, "baseline"),
            made_row("base again", "base", 0, seed, 2.0, 4.0, "again"),
        ]
        rows += [made_row("wide", "hidden", 1, seed, 4.0, 6.0), made_row("small", "hidden", 2, seed, 1.0, 3.0)]
    base, wide, small = ppo_guide.table(rows).to_dict("records")
    assert base["speed"] == "baseline" and base["by_steps"] == base["by_seconds"] == 0
    assert (wide["by_steps"], wide["by_seconds"], wide["steps_verdict"], wide["seconds_verdict"]) == (
        2,
        -1,
        "better",
        "worse",
    )
    assert wide["sps_ratio"] == pytest.approx(0.5) and wide["speed"] == "slower" and wide["result"] == 6
    assert (small["by_steps"], small["by_seconds"], small["steps_verdict"], small["seconds_verdict"]) == (
        -1,
        1,
        "worse",
        "better",
    )
    assert small["sps"] == 100 and small["seeds"] == 6


def test_differences_that_swing_are_not_seen():
    rows = []
    for seed in range(6):
        rows += [
            made_row("base", "base", 0, seed, 2.0, 4.0, "baseline"),
            made_row("base again", "base", 0, seed, 2.0, 4.0, "again"),
        ]
        rows += [made_row("x", "hidden", 1, seed, 2.0, 4.0 + (-1) ** seed)]
    assert ppo_guide.table(rows).iloc[1]["steps_verdict"] == "no difference seen"
    rows[-1]["mean_return"] = math.nan
    assert ppo_guide.table(rows).iloc[1]["steps_verdict"] == "not evaluated"
