"""Iterations under every loop, the bound that a dear env sets, whole trainings: rows and hand-worked numbers."""

import math
import time

import pandas as pd
import pytest

from rlbench import Choices, ConfigError
from rlbench.experiments import fused_before, loop_trainings, loops
from rlbench.native.build import BuildError, load
from rlbench.speedups import SPEEDUPS

SMALL = {"hidden": (8,), "batch_size": 4}


def no_compiler():
    try:
        load("dqn_loop")
    except BuildError:
        return True
    return False


def test_operations_of_an_iteration_by_hand():
    """4-3-2: a pass 2·12 + 2·6 = 36 a row. Six envs act: 216. Three updates of 5 rows: 3·36 + backward 2·36 - 24 = 156 a row."""
    config = loops.settings(num_envs=6, train_frequency=2, batch_size=5, hidden=(3,))
    assert loops.products(config) == 6 * 36 + 3 * 5 * 156
    assert loops.products(config.replace(train_frequency=12, double_dqn=False)) == 6 * 36 + 0.5 * 5 * 120


def test_every_axis_changes_one_thing():
    config = loops.settings()
    envs, width, batch = (loops.changed(config, axis, 7) for axis in loops.AXES)
    assert (envs.num_envs, envs.train_frequency, envs.learning_starts) == (7, 7, 56)
    assert width == config.replace(hidden=(7, 7)) and batch == config.replace(batch_size=7)
    with pytest.raises(ConfigError, match="environments, hidden width, batch"):
        loops.changed(config, "depth", 2)


def test_ways_differ_in_what_they_are_named_for():
    ways = loops.ways("cpu")
    assert list(ways) == [loops.PYTHON, loops.PARTS, "tensors", "fused", "native"]
    assert ways[loops.PYTHON] == Choices.plain() and ways[loops.PARTS].loop == "python"
    assert ways[loops.PARTS].update == Choices.fast().update != Choices.plain().update
    assert all(ways[name].loop == name for name in ("tensors", "fused", "native"))
    assert loops.quickest("cpu") == "native" and loops.quickest("cuda") == "fused"


def test_a_call_goes_on_by_as_many_iterations_under_every_loop(monkeypatch):
    made = []
    real = loops.DQN
    monkeypatch.setattr(loops, "DQN", lambda *given: made.append(real(*given)) or made[-1])
    config = loops.settings(num_envs=3, train_frequency=3, learning_starts=6, **SMALL)
    for name in ("python", "tensors", *([] if no_compiler() else ["native"])):
        call = loops.iterations(config, loops.ways()[name])
        call()
        call()
    assert {(trainer.iterations, trainer.env_steps, trainer.updates) for trainer in made} == {(32, 96, 30)}


def test_rows_of_a_sweep_have_the_baseline_first():
    rows = loops.over("batch", [4, 8], loops.settings(num_envs=2, train_frequency=2, hidden=(8,)), rounds=1, quick=True,
                      progress=False)  # fmt: skip
    assert [row["size"] for row in rows] == [4] * 4 + [8] * 4 and {row["over"] for row in rows} == {"batch"}
    assert [row["variant"] for row in rows[:4]] == ["python", loops.PARTS, "tensors", "native"]
    assert [row["verdict"] for row in rows if row["variant"] == "python"] == ["baseline"] * 2
    for row in rows:
        assert row["kind"] == "loop" and row["hidden"] == [8] and row["products_us"] > 0
        if row["not_measured"] is None:
            assert row["iteration_us"] * loops.CALL == pytest.approx(row["median_us"])
            assert row["times_products"] == pytest.approx(row["iteration_us"] / row["products_us"])


def test_a_loop_that_cannot_run_here_says_why(monkeypatch):
    slot = SPEEDUPS["loop"]
    never = type(slot)(**{**slot.__dict__, "requires": lambda name, *rest: "no" if name == "native" else None})
    monkeypatch.setitem(loops.SPEEDUPS, "loop", never)
    rows = loops.over("batch", [4], loops.settings(**SMALL), loops=["native"], rounds=1, quick=True, progress=False)
    assert rows[1]["not_measured"] == "no" and math.isnan(rows[1]["ratio"]) and math.isnan(rows[1]["iteration_us"])


def test_a_dear_env_leaves_less_to_win():
    config = loops.settings(num_envs=2, train_frequency=2, **SMALL)
    cheap, dear = loops.dear_envs([1, 3000], config, rounds=1, quick=True, progress=False)
    assert dear["median_us"] > 20 * cheap["median_us"] > 0  # work that takes a thousand times as long
    assert 0.5 < dear["ratio"] < cheap["ratio"] and dear["label"] == "3,000 µs a step"


@pytest.mark.parametrize("name", ["ou", "CartPole-v1"])
def test_whole_trainings_with_looks_on_the_way(name):
    rows = loop_trainings.trainings([name], [1], steps=40, quick=True, progress=False)
    assert [row["role"] for row in sorted(rows, key=lambda row: (row["rung"], row["role"]))][:2] == [
        "again",
        "baseline",
    ]
    assert {row["label"] for row in rows} == {"plain", "plain again", "fast", "fast, loop=python"}
    points = loop_trainings.on_the_clock(rows)
    assert list(points["name"].unique()) == ["plain", "fast", "fast, loop=python"] and set(points["env"]) == {name}
    looks = list(points[points["name"] == "plain"]["env_step"])
    assert len(looks) == 4 and looks[-1] == 40 and (points["seconds"] > 0).all()


def training(label, role, rung, seed, value, **more):
    row = {"env": "e", "study": "s", "label": label, "role": role, "rung": rung, "seed": seed, "mean_return": value}
    return {**row, "compile_s": 0.5, "evaluations": [[10.0, 1.0, value]], "not_measured": None, **more}


def test_returns_are_counted_as_equal_within_a_seed():
    rows = [training("fast", "variant", 1, seed, value) for seed, value in ((1, 3.0), (2, 5.0), (3, 7.0))]
    rows += [training("plain", "baseline", 0, seed, value) for seed, value in ((1, 3.0), (2, 4.0), (3, 7.0))]
    rows += [training("gone", "variant", 2, None, None, not_measured="no")]
    found = loop_trainings.equal_returns(pd.DataFrame(rows)).set_index("label")
    assert tuple(found.loc["fast", ["equal", "seeds"]]) == (2, 3) and found.loc["plain", "equal"] == 3
    assert "gone" not in found.index
    points = loop_trainings.on_the_clock(rows)
    assert list(points["name"]) == ["plain"] * 3 + ["fast"] * 3 and set(points["seconds"]) == {1.5}


def test_seconds_of_compiling_are_those_of_the_first_call():
    def bind(variant, inputs):
        waits = iter([0.05, 0.0])
        return lambda: time.sleep(next(waits))

    slot = type(SPEEDUPS["loop"])(**{**SPEEDUPS["loop"].__dict__, "bind": bind, "requires": lambda *given: None})
    found = fused_before.compile_seconds(slot, [1, 10], "cpu")
    assert [row["size"] for row in found] == [1, 10] and all(row["compile_s"] > 0.04 for row in found)
    assert fused_before.compile_seconds(fused_before.without(slot, "fused"), [1], "cpu") == []


def test_a_quick_run_leaves_out_what_it_would_have_to_compile(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    if SPEEDUPS["loop"].requires("fused", None, None, pytest.importorskip("torch").device("cpu"), None):
        pytest.skip("torch.compile does not work here")
    assert "fused" in fused_before.slot_for([1], "cpu", quick=False)[0].variants
    slot, text = fused_before.slot_for([1], "cpu", quick=True)
    assert "fused" not in slot.variants and "left out" in text
    rows = [{"variant": "fused", "rounds": n, "size": n, "device": "cpu"} for n in (0, 1)]
    fused_before.leave_marks([*rows, {"variant": "native", "rounds": 3, "size": 7, "device": "cpu"}])
    assert [fused_before.mark(size, "cpu").is_file() for size in (0, 1, 7)] == [False, True, False]
    slot, text = fused_before.slot_for([1], "cpu", quick=True)
    assert "fused" in slot.variants and text == ""
    assert "fused" not in fused_before.slot_for([1, 2], "cpu", quick=True)[0].variants
