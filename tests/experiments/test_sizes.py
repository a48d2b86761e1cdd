"""The study over sizes: what is changed, what the rows say, and a table whose numbers are known."""

import math

import pytest

from rlbench import Choices, ConfigError, DQNConfig
from rlbench.experiments import sizes
from rlbench.size_findings import COSTS, RETURNS

CONFIG = DQNConfig(
    total_timesteps=60, learning_starts=20, train_frequency=4, hidden=(8, 8), batch_size=4, eval_episodes=2,
)  # fmt: skip


def test_the_market_has_the_usual_features_and_its_process():
    market = sizes.market(500)
    assert market.features.shape == (500, 11) and market.feature_names[-1] == "deviation"
    assert market.process["kind"] == "ornstein_uhlenbeck"


def test_one_thing_is_changed_at_a_time():
    config = sizes.settings(total_timesteps=1_000)
    plan = sizes.plan_of_sizes(config, Choices.plain())
    assert [variant.label for variant in plan.variants] == [
        "as given", "batch 32", "batch 256", "batch 512", "width 32", "width 128", "width 256", "dueling", "conv",
    ]  # fmt: skip
    assert plan.baseline.config == config and config.total_timesteps == 1_000
    for variant in plan.variants[1:]:
        own, base = variant.config, plan.baseline.config
        changed = [name for name in ("batch_size", "hidden", "network") if getattr(own, name) != getattr(base, name)]
        assert len(changed) == 1 and own.replace(**{changed[0]: getattr(base, changed[0])}) == base
    assert len(sizes.plan_of_sizes(config, Choices.plain(), quick=True).variants) == 7


def test_a_row_has_sizes_costs_and_the_best_return():
    rows = sizes.sizes(CONFIG, [3], bars=2_000, window=2, quick=True, progress=False)
    assert len(rows) == 10  # as given, its control, and eight others: neither 4 nor 8 is among the sizes
    by_label = {row["label"]: row for row in rows}
    conv, batch, width = by_label["conv"], by_label["batch 512"], by_label["width 32"]
    assert (conv["axis"], batch["axis"], width["axis"]) == ("network", "batch", "width")
    # 2 bars of 11 features, 2 own numbers, 3 actions: filters 11·4 + 4; 2·4 + 2 = 10 inputs to 8-8-3.
    assert conv["parameters"] == 48 + (10 * 8 + 8) + (8 * 8 + 8) + (8 * 3 + 3)
    assert by_label["as given"]["parameters"] == (24 * 8 + 8) + (8 * 8 + 8) + (8 * 3 + 3)
    assert batch["samples"] == batch["updates"] * 512 and batch["samples_per_s"] == batch["samples"] / batch["train_s"]
    assert {row["best_return"] for row in rows} == {batch["best_return"]} and batch["best_return"] > 0
    table = sizes.table(rows)
    assert list(table["label"])[:2] == ["as given", "batch 32"] and len(table) == 9 and set(table["seeds"]) == {1}
    assert table["hidden"].iloc[0] == "8-8"


def test_without_evaluation_there_is_nothing_to_study():
    with pytest.raises(ConfigError, match="eval_episodes=0"):
        sizes.sizes(CONFIG.replace(eval_episodes=0), [1])


def made_row(label, axis, rung, seed, train_s, mean_return, role="variant", **changes):
    """A row of the study with the numbers that matter."""
    row = {
        "kind": "training", "study": "s", "mode": "sizes", "machine": "m", "device": "cpu", "env": "e", "label": label,
        "baseline": "as given", "axis": axis, "rung": rung, "seed": seed, "role": role, "train_s": train_s,
        "total_s": train_s, "compile_s": 0.0, "sps": 100 / train_s, "mean_return": mean_return, "random_return": -1.0,
        "best_return": 10.0, "weights_sha256": f"{label}{seed}", "evaluations": [], "not_measured": None, "network": "mlp",
        "batch_size": 128, "hidden": "64-64", "parameters": 5, "update_flops": 7, "samples": 2_000_000,
        "samples_per_s": 2_000_000 / train_s, "choices": {"update": "eager"}, "updates": 10,
    }  # fmt: skip
    return {**row, **changes}


def made_rows(seeds=range(10)):
    rows = []
    for seed in seeds:
        rows.append(made_row("as given", "as given", 0, seed, 2.0, 4.0, role="baseline"))
        rows.append(made_row("as given again", "as given", 0, seed, 2.0, 4.0, role="again"))
        large = {"batch_size": 512, "samples": 8_000_000, "samples_per_s": 8_000_000 / 3.0}
        rows.append(made_row("batch 512", "batch", 1, seed, 3.0, 5.0, **large))
        rows.append(made_row("width 256", "width", 2, seed, 1.0, 2.0 + seed % 2 * 4, hidden="256-256", parameters=9))
        rows.append(made_row("conv", "network", 3, seed, 4.0, 3.0, network="conv", choices={"update": "native"}))
    return rows


def test_the_table_by_hand():
    """Shares 0.4, 0.5 and 0.3 of 10; chance is -0.1: above it 0.5 in 2 million samples and 0.6 in 8 million."""
    base, batch, width, conv = sizes.table(made_rows()).to_dict("records")
    assert (base["share_difference"], base["time_ratio"], base["speed"]) == (0.0, 1.0, "baseline")
    assert base["share"] == pytest.approx(0.4)
    assert batch["share_difference"] == pytest.approx(0.1) and batch["share_difference_low"] == pytest.approx(0.1)
    assert batch["time_ratio"] == pytest.approx(1.5) and batch["speed"] == "slower" and batch["seconds"] == 3.0
    assert base["gain_per_sample"] == pytest.approx(0.25) and batch["gain_per_sample"] == pytest.approx(0.075)
    assert batch["samples_per_s"] == pytest.approx(8e6 / 3)
    assert width["share_difference_low"] < 0 < width["share_difference_high"] and width["speed"] == "faster"
    assert {*COSTS, *RETURNS} <= set(base)
    assert conv["share"] == pytest.approx(0.3) and conv["update"] == "native" and conv["seeds"] == 10


def test_differences_are_taken_within_a_seed():
    """Returns that swing with the seed, and one more in each: the difference does not swing."""
    rows = made_rows()
    for row in rows:
        row["mean_return"] = 7.0 * (row["seed"] % 3) + (1.0 if row["label"] == "batch 512" else 0.0)
    batch = sizes.table(rows).iloc[1]
    assert batch["share_difference_low"] == pytest.approx(0.1) and batch["share_difference_high"] == pytest.approx(0.1)
    assert batch["share_high"] - batch["share_low"] > 0.1


def test_a_configuration_that_could_not_run_is_left_out():
    barred = made_row("conv", "network", 3, None, math.nan, math.nan, not_measured="no")
    rows = [row for row in made_rows() if row["label"] != "conv"]
    assert list(sizes.table([*rows, barred])["label"]) == ["as given", "batch 512", "width 256"]
