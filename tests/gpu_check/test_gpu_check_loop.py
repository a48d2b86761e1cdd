"""The fused loop's rate: from stretches to env steps a second, and sizes that fail do not take the others with them."""

import numpy as np
import pytest
import torch

from rlbench.gpu_check import loop


def test_rates_and_ratio_by_hand():
    """CPU 2 µs an env step, GPU 0.5 µs in each of five rounds, CPU again 2 µs: 500,000 and 2,000,000 steps a second."""
    seconds = np.tile([2e-6, 0.5e-6, 2e-6], (5, 1))
    found = loop.numbers(seconds, cuda=True)
    assert found["cpu_sps"] == pytest.approx(5e5) and found["gpu_sps"] == pytest.approx(2e6)
    assert found["ratio"] == pytest.approx(4.0) and found["verdict"] == "faster"


def test_without_a_gpu_the_cpus_rate_stands_alone():
    found = loop.numbers(np.array([[1e-6, 1e-6], [3e-6, 1e-6], [2e-6, 1e-6]]), cuda=False)
    assert found["cpu_sps"] == pytest.approx(5e5) and found["gpu_sps"] is None
    assert found["not_measured"].endswith("not measured on this machine")


def test_a_stretch_is_timed_between_log_points(monkeypatch):
    """Log points at steps 10, 20, 30, 40 after 1, 2, 3.5 and 5 seconds; the second one at least 2 s behind the first."""
    now = [0.0]
    monkeypatch.setattr(loop.time, "perf_counter", lambda: now[0])

    class Agent:
        stopped = False

        def stop(self):
            self.stopped = True

        def train(self, progress, on_log):
            for step, at in ((10, 1.0), (20, 2.0), (30, 3.5), (40, 5.0)):
                now[0] = at
                if not self.stopped:
                    on_log({"step": step})

    runner = object.__new__(loop.Runner)
    runner.agent, runner.least_s = Agent(), 2.0
    assert runner.stretch() == pytest.approx(2.5 / 20)


def test_iterations_between_log_points_fall_with_the_envs_on_the_cpu_alone():
    cpu = [loop.iterations_of(n, torch.device("cpu"), False) for n in (1, 128, 1024, 65_536)]
    assert cpu == [512, 512, 128, 2]
    assert loop.iterations_of(65_536, torch.device("cuda"), False) == 512


def test_sizes_are_the_powers_of_four_with_both_ends_first():
    assert sorted(loop.NUM_ENVS) == [4**k for k in range(9)]
    assert loop.NUM_ENVS[:2] == (1, 65_536)


def test_both_sides_are_run_a_few_iterations(pretending):
    rows = list(loop.fused_loop(pretending))
    assert [row["num_envs"] for row in rows] == [1, 16]
    for row in rows:
        assert row["error"] is None and row["cpu_sps"] > 0 and row["gpu_sps"] > 0
        assert row["verdict"] == "too few rounds"


def test_a_size_that_fails_leaves_the_others(monkeypatch, check):
    def timed(check, num_envs):
        if num_envs == 1:
            raise RuntimeError("out of memory")
        return {"cpu_sps": 1.0}

    monkeypatch.setattr(loop, "_timed", timed)
    rows = list(loop.fused_loop(check))
    assert rows[0]["verdict"] == "failed" and "out of memory" in rows[0]["error"]
    assert rows[1]["cpu_sps"] == 1.0 and rows[1]["error"] is None
