"""Shares of the time in which the device works, from a profiler's events."""

from types import SimpleNamespace

import pytest
import torch

from rlbench.gpu_check import busy

DEVICE = torch.autograd.DeviceType


def event(name, start, end, kind=DEVICE.CUDA):
    return SimpleNamespace(name=name, device_type=kind, time_range=SimpleNamespace(start=start, end=end))


@pytest.mark.parametrize(
    ("spans", "length"),
    [
        ([], 0.0),
        ([(0, 1)], 1.0),
        ([(5, 7), (0, 2)], 4.0),
        ([(0, 4), (1, 2), (3, 6)], 6.0),
        ([(0, 1), (1, 2)], 2.0),
        ([(0, 1), (0, 1)], 1.0),
    ],
)
def test_overlap_counts_once(spans, length):
    assert busy.covered(spans) == length


def test_kernels_and_copies_are_told_apart_and_the_host_is_left_out():
    events = [
        event("sgemm", 0, 3),
        event("Memcpy HtoD (Pageable -> Device)", 2, 4),
        event("Memset (Device)", 6, 7),
        event("aten::mm", 0, 100, DEVICE.CPU),
    ]
    spans = busy.device_spans(events)
    assert {kind: busy.covered(part) for kind, part in spans.items()} == {"kernels": 3, "copies": 3, "all": 5}


def test_shares_by_hand():
    assert busy.shares({"kernels": 2.0, "copies": 1.0, "all": 3.0}, 8.0) == {
        "busy_share": 0.25,
        "transfer_share": 0.125,
    }


def test_a_profiler_that_saw_nothing_gives_no_share():
    found = busy.shares({"kernels": 0.0, "copies": 0.0, "all": 0.0}, 8.0)
    assert found["verdict"] == "not measured" and "busy_share" not in found


def test_without_cuda_one_row_says_so(check):
    (row,) = busy.gpu_use(check)
    assert row["not_measured"].endswith("not measured on this machine")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_the_gpu_every_job_is_looked_at(check):
    check.device = torch.device("cuda")
    for row in busy.gpu_use(check):
        assert row["error"] is None and row["busy_share"] > 0 and row["peak_mb"] > 0


def test_what_is_looked_at_trains_a_stretch(check, monkeypatch):
    monkeypatch.setattr(busy, "GAMES", 16)
    jobs = busy.jobs(check)
    assert len(jobs) == 9 and [name for name in jobs if name.startswith("PPO")] == [
        f"PPO {name}, 16 games" for name in ("plain", "packed_triton", "fast")
    ]
    for name in ("plain, 8 envs", "PPO plain, 16 games"):
        num_envs, make = jobs[name]
        runner = make()
        assert runner.agent.config.num_envs == num_envs and runner.stretch() > 0
        assert runner.agent.env_steps > 0
