import pytest
import torch

from rlbench.profiling import peaks as peaks_module
from rlbench.profiling.limits import Peaks
from rlbench.profiling.peaks import best_seconds, measure_peaks, memory_rates, show_peaks

CPU = torch.device("cpu")


class Clock:
    """Each look at it takes the next of some seconds."""

    def __init__(self, *passed):
        self.now, self.passed = 0.0, list(passed)

    def perf_counter(self):
        now = self.now
        self.now += self.passed.pop(0) if self.passed else 0.0
        return now


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(peaks_module, "_measured", {})


def test_all_that_a_cpu_has_is_measured_and_nothing_is_left_changed():
    state, precision = torch.get_rng_state(), torch.get_float32_matmul_precision()
    found = measure_peaks("cpu")
    assert found.device == "cpu" and set(found.matmul) == {"float32", "bfloat16"}
    assert min(*found.matmul.values(), found.copy, found.launch_s, found.python_s, found.least_s) > 0
    assert found.cache >= found.copy and found.least_s <= found.launch_s
    assert found.upload is None and found.download is None
    assert torch.equal(torch.get_rng_state(), state) and torch.get_float32_matmul_precision() == precision


def test_peaks_are_measured_once_for_each_number_of_threads(monkeypatch):
    calls = []
    monkeypatch.setattr(peaks_module, "_measure", lambda device, repeats: calls.append(repeats) or object())
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    first = measure_peaks("cpu")
    assert measure_peaks(torch.device("cpu")) is first and len(calls) == 1
    assert measure_peaks("cpu", quick=False) is not first
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert measure_peaks("cpu") is not first and len(calls) == 3


def test_the_best_run_counts_and_the_first_does_not(monkeypatch):
    # Looks: two a run; one before all counted runs, one behind each of them.
    looks = (0.5, 0.0, 0.0, 4.0, 0.0, 0.0, 2.0, 0.0, 0.0, 6.0)
    monkeypatch.setattr(peaks_module, "time", Clock(*looks))
    monkeypatch.setattr(peaks_module, "ENOUGH_S", 100.0)
    calls = []
    assert best_seconds(lambda: calls.append(1), CPU, 2, 3) == 1.0
    assert len(calls) == 8


def test_a_busy_machine_is_not_asked_for_all_repetitions(monkeypatch):
    monkeypatch.setattr(peaks_module, "time", Clock(0.5, 0.0, 0.0, 4.0))
    calls = []
    assert best_seconds(lambda: calls.append(1), CPU, 1, 9) == 4.0
    assert len(calls) == 2


def test_a_copy_reads_and_writes_and_a_sum_reads_twice(monkeypatch):
    monkeypatch.setattr(peaks_module, "best_seconds", lambda call, device, calls, repeats: 0.5)
    assert memory_rates(CPU, 1000, 3) == (4000.0, 6000.0)


def test_large_products_are_left_out_where_they_would_take_too_long(monkeypatch):
    asked = []

    def slow(device, sizes, repeats, dtype):
        asked.append(sizes)
        return 1e9

    monkeypatch.setattr(peaks_module, "matmul_peak", slow)
    # At a thousand million a second, 256 cubed twice is 34 ms, five of them 0.17 s; 512 cubed twice eight times as long.
    assert peaks_module._matmul_rate(CPU, 5, torch.bfloat16) == 1e9
    assert asked == [(256,), (256,)]


def test_a_float64_default_changes_nothing():
    torch.set_default_dtype(torch.float64)
    try:
        assert peaks_module.matmul_peak("cpu", (8,), 1, torch.bfloat16) > 0
        assert memory_rates(CPU, 4096, 1)[0] > 0
    finally:
        torch.set_default_dtype(torch.float32)


def test_peaks_read_as_text_without_what_was_not_measured():
    rows = dict(show_peaks(Peaks("cpu", {"float32": 2.5e10}, 1e10, launch_s=1e-6, python_s=4e-8)))
    assert rows == {
        "matrix products, float32": "25 GFLOP/s",
        "memory, large tensors": "10 GB/s",
        "smallest operator": "1 µs",
        "Python call": "0.04 µs",
    }
