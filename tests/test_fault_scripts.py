"""The faults that are planted for the profiler: each changes what it says and nothing else. No test depends on a time."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from benchmarks.faults import ours

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
    columns = obs[:, 0], action, reward, next_obs[:, 1], done
    rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
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


@pytest.mark.parametrize("name", [BY_HAND, SB3])
def test_scripts_know_nothing_of_this_package(name):
    tree = ast.parse((Path(ours.__file__).parent / f"{name}.py").read_text(encoding="utf-8"))
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert "torch" in modules
    assert not [module for module in modules if module.split(".")[0] in ("rlbench", "benchmarks")]
