"""Switches of CUDA: put back, called at log points, and refused where there is none."""

import pytest
import torch

from rlbench.speedups import backend

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("before", [False, True])
def test_cudnn_benchmark_is_put_back(before, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", before)
    with pytest.raises(KeyError), backend.VARIANTS["cudnn_benchmark"]() as setting:
        assert torch.backends.cudnn.benchmark is True
        setting.on_log()
        raise KeyError
    assert torch.backends.cudnn.benchmark is before


@pytest.mark.parametrize("name", backend.VARIANTS)
def test_the_cache_is_emptied_at_log_points_by_one_alone(name, monkeypatch):
    calls = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append(1))
    with backend.VARIANTS[name]() as setting:
        assert calls == []
        setting.on_log()
        setting.on_log()
    assert len(calls) == (2 if name == "empty_cache_each_epoch" else 0)


def test_what_needs_cuda():
    for name in ("cudnn_benchmark", "empty_cache_each_epoch"):
        assert "needs CUDA" in backend.requires(name, None, None, CPU, None)
        assert backend.requires(name, None, None, CUDA, None) is None
    assert backend.requires("default", None, None, CPU, None) is None


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", backend.VARIANTS)
def test_all_give_the_same_gradients(name, size):
    speedup = backend.SPEEDUP
    expected = speedup.exercise(backend.Default, speedup.make_inputs(size, 0, "cpu"))
    actual = speedup.exercise(backend.VARIANTS[name], speedup.make_inputs(size, 0, "cpu"))
    speedup.check(expected, actual)
    with pytest.raises(AssertionError):
        speedup.check(expected, [gradient + 1e-4 for gradient in actual])
