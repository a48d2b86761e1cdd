"""The faults that are planted for the profiler: each changes what it says and nothing else. No test depends on a time."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import math
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # `benchmarks` is no part of the installed package

from benchmarks import planted_faults
from benchmarks.faults import ours
from benchmarks.faults.verdicts import judged, measured, metric_of, table
from rlbench.cli.app import main as rlbench_main
from rlbench.results import append, load
from rlbench.speedups import Choices
from rlbench.trainers.make import make_trainer
from rlbench.workloads import workload

needs_peer = pytest.mark.skipif(importlib.util.find_spec("stable_baselines3") is None, reason="SB3 is not installed")
BY_HAND, SB3 = "dqn_by_hand", "sb3_script"
FAULTS = tuple(ours.PLANTED)
STARTS, STEPS = 130, 450  # a market's episode is 200 bars: two ends in 450 steps
LEARNS = {"loop_over_samples": 135, "too_wide": 140}  # steps where an update is slow
CASES = [pytest.param(BY_HAND, fault, id=f"{BY_HAND}-{fault}") for fault in FAULTS] + [
    pytest.param(SB3, fault, id=f"{SB3}-{fault}", marks=needs_peer) for fault in FAULTS
]


@pytest.fixture(autouse=True)
def threads_as_they_were():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


class Seen:
    """What a script does while it runs: calls by name, from the script's own lines where libraries make them too."""

    def __init__(self, monkeypatch, module):
        self.calls: dict[str, int] = {}
        self.widths: set[int] = set()
        self.losses_of: set[int] = set()
        self.file, self.monkeypatch = module.__file__, monkeypatch
        self._count(torch.Tensor, "item", "item", own_lines=True)
        self._count(random, "sample", "random.sample")
        self._count(torch, "stack", "torch.stack", own_lines=True)
        self._count(pd, "read_csv", "read_csv")
        self._count(module, "make_features" if hasattr(module, "make_features") else "indicators", "features")
        monkeypatch.setattr(time, "sleep", lambda seconds: self._add(f"sleep {seconds}"))
        self._layers()
        self._losses()
        write = module.write_prices
        monkeypatch.setattr(module, "write_prices", lambda path: write(path, bars=2_000))

    def _add(self, name):
        self.calls[name] = self.calls.get(name, 0) + 1

    def _count(self, holder, function, name, own_lines=False):
        before = getattr(holder, function)

        def counted(*args, **kwargs):
            if not own_lines or sys._getframe(1).f_code.co_filename == self.file:
                self._add(name)
            return before(*args, **kwargs)

        self.monkeypatch.setattr(holder, function, counted)

    def _layers(self):
        before = torch.nn.Linear.__init__

        def init(layer, inputs, outputs, *args, **kwargs):
            self.widths.add(outputs)
            before(layer, inputs, outputs, *args, **kwargs)

        self.monkeypatch.setattr(torch.nn.Linear, "__init__", init)

    def _losses(self):
        before = torch.nn.functional.smooth_l1_loss

        def loss(values, *args, **kwargs):
            self._add("loss")
            self.losses_of.add(values.numel())
            return before(values, *args, **kwargs)

        self.monkeypatch.setattr(torch.nn.functional, "smooth_l1_loss", loss)


def run(monkeypatch, capsys, name, fault, env=None):
    """The script's JSON line, and what was seen."""
    module = importlib.import_module(f"benchmarks.faults.{name}")
    steps = LEARNS.get(fault, STEPS)
    words = ["--fault", fault, "--steps", str(steps), "--seconds", "60", "--learning-starts", str(STARTS)]
    monkeypatch.setattr(sys, "argv", [name, *words, *(["--env", env] if env else [])])
    torch.set_num_threads(1)
    with monkeypatch.context() as patched:
        seen = Seen(patched, module)
        module.main()
    return json.loads(capsys.readouterr().out.splitlines()[-1]), seen


def found_in(reached, seen):
    """The faults that a run shows, by what it did and how often."""
    calls, updates = seen.calls, reached["updates"]
    shown = {
        "env_waits": "sleep 0.03" in calls,
        "sync_each_step": calls.get("item", 0) >= min(updates, reached["steps"]),
        "loop_over_samples": calls["loss"] == 128 * updates and seen.losses_of == {1},
        "stacked_replay": (calls.get("random.sample", 0), calls.get("torch.stack", 0)) == (updates, 2 * updates),
        "recomputed_features": calls.get("features", 0) > reached["steps"],
        "file_each_episode": calls.get("read_csv", 0) > 1,
        "too_many_threads": torch.get_num_threads() > 1,
        "too_wide": 1280 in seen.widths,
        "small_batch": reached["transitions"] == updates,
    }
    return {fault for fault, is_shown in shown.items() if is_shown}


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_fault_is_what_it_says_and_the_only_one(monkeypatch, capsys, name, fault):
    reached, seen = run(monkeypatch, capsys, name, fault)
    steps = LEARNS.get(fault, STEPS) - STARTS
    assert reached["fault"] == fault
    assert reached["steps"] == steps
    assert reached["updates"] in (
        steps,
        steps + 1,
    )  # SB3 learns after its first `learning_starts` steps, ours in the last
    assert reached["transitions"] == reached["updates"] * (1 if fault == "small_batch" else 128)
    assert reached["sps"] == pytest.approx(steps / reached["seconds"])
    assert reached["learnt_per_s"] == pytest.approx(reached["transitions"] / reached["seconds"])
    assert found_in(reached, seen) == {fault}


@pytest.mark.parametrize("env", ["cartpole", "market"])
@pytest.mark.parametrize("name", [BY_HAND, pytest.param(SB3, marks=needs_peer)])
def test_a_healthy_script_has_none_of_them(monkeypatch, capsys, name, env):
    reached, seen = run(monkeypatch, capsys, name, "none", env)
    assert found_in(reached, seen) == set()
    in_market = env == "market"
    assert seen.calls.get("read_csv", 0) == seen.calls.get("features", 0) == in_market
    assert not {"item", "random.sample", "torch.stack"} & set(seen.calls)
    assert seen.losses_of == {128}
    assert seen.widths == {128, 2}


@pytest.mark.parametrize("name", [BY_HAND, pytest.param(SB3, marks=needs_peer)])
def test_market_faults_by_hand(monkeypatch, capsys, name):
    """450 steps: the first reset and one at each of two ends, of 200 bars each."""
    _, reading = run(monkeypatch, capsys, name, "file_each_episode")
    assert (reading.calls["read_csv"], reading.calls["features"]) == (1 + 3, 1 + 3)
    _, computing = run(monkeypatch, capsys, name, "recomputed_features")
    assert (computing.calls["read_csv"], computing.calls["features"]) == (1, 1 + 3 + 450)


@pytest.mark.parametrize("name", [BY_HAND, pytest.param(SB3, marks=needs_peer)])
def test_recomputed_features_are_those_of_the_table(tmp_path, name):
    """The window is long enough: a trailing mean of 20 has forgotten all but e^-10 of what lies 100 bars back."""
    module = importlib.import_module(f"benchmarks.faults.{name}")
    module.write_prices(tmp_path / "prices.csv", bars=500)
    cls = getattr(module, "MarketEnv", None) or module.Market
    quick, slow = cls(tmp_path / "prices.csv", False, False), cls(tmp_path / "prices.csv", False, True)
    np.testing.assert_allclose(quick.reset(seed=3)[0], slow.reset(seed=3)[0], atol=1e-3)
    for action in (1, 0, 1):
        one, other = quick.step(action), slow.step(action)
        np.testing.assert_allclose(one[0], other[0], atol=1e-3)
        assert one[1:4] == other[1:4]


def test_stacked_and_gathered_rows_are_of_one_form():
    module = importlib.import_module(f"benchmarks.faults.{BY_HAND}")
    batches = []
    for replay in (module.Replay(3, 2), module.ListReplay(3)):
        for i in range(4):  # the first row is overwritten
            replay.add(np.full(2, i, np.float32), i % 2, float(i), np.full(2, i + 1, np.float32), i == 3)
        assert len(replay) == 3
        batch = replay.sample(3)
        assert {int(obs[0]) for obs in batch[0]} <= {1, 2, 3}
        batches.append([(part.dtype, tuple(part.shape)) for part in batch])
    assert batches[0] == batches[1]
    obs, action, reward, next_obs, done = batch  # a sample of three of three
    rows = sorted(zip(obs[:, 0].tolist(), action.tolist(), reward.tolist(), next_obs[:, 1].tolist(), done.tolist()))
    assert rows == [(1, 1, 1, 2, 0), (2, 0, 2, 3, 0), (3, 1, 3, 4, 1)]


def test_one_loss_a_sample_has_the_gradient_of_one_for_all():
    module = importlib.import_module(f"benchmarks.faults.{BY_HAND}")
    torch.manual_seed(0)
    online, target = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
    batch = (torch.randn(5, 4), torch.tensor([0, 1, 1, 0, 1]), torch.randn(5), torch.randn(5, 4), torch.rand(5).round())
    gradients = []
    for loss_of in (module.loss_of, module.loss_by_sample):
        online.zero_grad()
        loss_of(online, target, batch).backward()
        gradients.append([parameter.grad.clone() for parameter in online.parameters()])
    torch.testing.assert_close(*gradients)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA")
def test_a_copy_to_the_device_and_back_is_refused_without_one():
    module = importlib.import_module(f"benchmarks.faults.{BY_HAND}")
    assert set(module.FAULTS) == {"none", *FAULTS, "round_trip"}
    ran = subprocess.run(
        [sys.executable, module.__file__, "--fault", "round_trip"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1 and ran.stdout == ""
    assert ran.stderr.strip() == "--fault round_trip needs CUDA: on the CPU there is nowhere to copy to"
    with pytest.raises(SystemExit):
        planted_faults.main(["--fault", "round_trip"])
    assert all("round_trip" not in job.faults for job in planted_faults.make_jobs())


@pytest.mark.parametrize("name", [BY_HAND, SB3])
def test_scripts_know_nothing_of_this_package(name):
    tree = ast.parse((ROOT / "benchmarks" / "faults" / f"{name}.py").read_text(encoding="utf-8"))
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert "torch" in modules
    assert not [module for module in modules if module.split(".")[0] in ("rlbench", "benchmarks")]


@pytest.mark.parametrize("fault", FAULTS)
def test_ours_differ_in_one_thing_and_both_train(fault, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    planted = ours.PLANTED[fault]
    loop = {"loop": "python"} if planted.trainer == "dqn" else {}
    slow_env = planted.slow_env or planted.env
    differ = [
        dict(planted.slots) != dict(planted.healthy_slots), bool(planted.settings), planted.threads != 1, slow_env != planted.env
    ]  # fmt: skip
    assert sum(differ) == 1
    for env, slots, settings in (
        (planted.env, planted.healthy_slots, {}),
        (slow_env, planted.slots, planted.settings),
    ):
        work = workload(env)
        small = {"total_timesteps": 300, "eval_episodes": 0, "eval_frequency": 0}
        config = work.config(
            work.preset_for(planted.trainer), planted.trainer, **(planted.base | dict(settings) | small)
        )
        trainer = make_trainer(config, Choices.plain().replace(**loop, **slots), work.env, "cpu")
        history = trainer.train(progress=False)
        trainer.close()
        assert history.updates > 0


def test_the_sleeping_env_waits_in_each_step(monkeypatch):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    env = ours.sleeping()
    env.reset(seed=0)
    for _ in range(3):
        env.step(0)
    assert waits == [0.03] * 3


@pytest.mark.parametrize("fault", FAULTS)
def test_the_command_line_takes_what_is_planted(fault, monkeypatch):
    asked = {}

    def profile_trainer(config, choices, env, device, seconds, **options):
        asked.update(config=config, choices=choices.to_dict(), threads=torch.get_num_threads(), seconds=seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr("rlbench.profiling.profile_trainer", profile_trainer, raising=False)
    planted = ours.PLANTED[fault]
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(rlbench_main(["profile", *planted.arguments(), "--seconds", "3", "--json"]))
    assert asked["threads"] == planted.threads and asked["seconds"] == 3
    for name, value in (planted.base | dict(planted.settings)).items():
        assert getattr(asked["config"], name) == value
    for slot, variant in planted.slots.items():
        assert asked["choices"][slot] == variant
    assert planted.trainer == "ppo" or asked["choices"]["loop"] == "python"


def test_what_counts_with_a_batch_of_one_is_what_was_learnt():
    assert [metric_of(fault) for fault in FAULTS] == ["sps"] * (len(FAULTS) - 1) + ["learnt_per_s"]


def test_gains_are_medians_of_pairs():
    """Gains of 2, 4 and 8, of which the median is 4; the control's are 1, 1/2 and 1."""
    found = measured({"slow": [1.0, 2.0, 1.0], "healthy": [2.0, 8.0, 8.0], "again": [2.0, 4.0, 8.0]})
    assert found["gain"] == pytest.approx(4)
    assert (found["gain_low"], found["gain_high"]) == (pytest.approx(2), pytest.approx(8))
    assert (found["aa_low"], found["aa_high"]) == (pytest.approx(0.5), pytest.approx(1))


def document(*advice, device="cpu"):
    names = ("name", "kind", "predicted_gain")
    phases = [("env", 0.6, ""), ("other", 0.1, ""), ("forward", 0.29, ""), ("backward", 0.5, "update")]
    return {
        "device": device,
        "advice": [dict(zip(names, each, strict=True)) for each in advice],
        "phases": [{"name": name, "seconds": 0.0, "share": share, "part_of": whole} for name, share, whole in phases],
    }


def test_a_verdict_by_hand():
    told = document(("too_wide", "fault", 6.0), ("env_waits", "fault", 3.0), ("a_gpu", "against", None))
    found = judged(told, "env_waits", 2.0)
    assert (found["found"], found["place"], found["first"]) == (True, 2, "too_wide")
    assert (found["predicted"], found["factor"], found["within"]) == (3.0, 1.5, True)
    assert found["other_share"] == 0.1
    assert found["shares_sum"] == pytest.approx(0.99)  # a part of a fused phase is in no sum
    assert judged(told, "too_wide", 9.5)["factor"] == pytest.approx(9.5 / 6)
    assert judged(told, "too_wide", 9.5)["within"] is False


@pytest.mark.parametrize(
    "told",
    [document(), document(("env_waits", "against", 3.0)), document(("too_wide", "fault", 3.0))],
    ids=["nothing", "only against", "another"],
)
def test_what_is_not_advised_is_not_found(told):
    found = judged(told, "env_waits", 3.0)
    assert (found["found"], found["place"], found["predicted"]) == (False, None, None)
    assert (found["factor"], found["within"]) == (None, False)


def test_advice_without_a_number_is_found_but_predicts_nothing():
    found = judged(document(("env_waits", "fault", None)), "env_waits", 3.0)
    assert (found["found"], found["place"], found["factor"], found["within"]) == (True, 1, None, False)


def fake_rates(script, fault, env, seconds):
    """Twice as fast without its fault, 100 times in transitions learnt; the market is a slower env."""
    base = 10.0 if env == "market" else 100.0
    healthy = fault == "none"
    return {"sps": base * (2 if healthy else 1), "learnt_per_s": base * (100 if healthy else 1)}


def test_a_target_is_measured_and_summed_up(monkeypatch, tmp_path):
    gains = {"env_waits": 2.5, "recomputed_features": 4.0, "small_batch": 100.0}
    monkeypatch.setattr(
        planted_faults, "profiled", lambda job, fault, seconds: document((fault, "fault", gains[fault]))
    )
    monkeypatch.setattr(planted_faults, "script_rates_once", fake_rates)
    job = planted_faults.Job("by hand", tuple(gains))
    units = []
    rows = planted_faults.measure(job, 2, True, units.append)
    assert len(units) == planted_faults.units([job], 2) == 3 + 2 * (3 + 4)
    assert [row["fault"] for row in rows] == list(gains)
    assert [row["gain"] for row in rows] == pytest.approx([2, 2, 100])
    assert [row["within"] for row in rows] == [True, False, True]
    assert all(len(row["rates"][side]) == 2 for row in rows for side in ("slow", "healthy", "again"))
    text = table(rows)
    assert "by hand: 3 of 3 found, 3 first, 2 predicted within a factor 1.5" in text
    assert "quick: do not cite" in text
    assert len(load(append(tmp_path / "rows.jsonl", rows))) == 3


def test_one_of_ours_is_timed_on_both_sides():
    rates = planted_faults.our_rates(ours.PLANTED["small_batch"], "small_batch", 2, 0.02)
    assert {side: len(values) for side, values in rates.items()} == {"slow": 2, "healthy": 2, "again": 2}
    assert all(value > 0 and math.isfinite(value) for values in rates.values() for value in values)


def test_faults_are_chosen_without_losing_the_others():
    chosen = planted_faults.make_jobs(["too_wide"])
    assert {job.faults for job in chosen} == {("too_wide",)}
    everything = planted_faults.make_jobs()
    assert all(set(job.faults) - {"round_trip"} == set(FAULTS) for job in everything)
    assert [job.name for job in everything if job.name != "Stable-Baselines3"] == ["by hand", "ours"]


def test_a_profile_that_fails_says_what_it_said():
    with pytest.raises(RuntimeError, match="no script"):
        planted_faults.profile(["gone.py"], [], 1.0)
