"""What this machine does at its best, measured now: arithmetic, memory, copies to and from a device, and single calls.

Every number is the best of several short runs, at the number of torch threads that is set now. A floor must not be beaten by the
run that is held against it, hence two numbers more: the fastest memory (a cache) and the cheapest call of an operator (from C++).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import repeat

import torch

from rlbench.experiments.light import matmul_peak, peak_sizes
from rlbench.profiling.limits import Peaks
from rlbench.timing import synchronize
from rlbench.updates.precision import Precision

CPU_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
CUDA_TYPES = {**CPU_TYPES, "float16": torch.float16}
MIB = 2**20
ENOUGH_S = 0.1  # of repetitions of one call; on a busy machine there are fewer of them
LONG_S = 0.5  # for products of one size
FEW = 300  # kernels that can be queued without waiting for room

_measured: dict[tuple[str, int, bool], Peaks] = {}


def measure_peaks(device: str | torch.device, quick: bool = True) -> Peaks:
    """The peaks of a device and of the host's calls to it, at the number of torch threads that is set now.

    Measured once a process for each device and number of threads. No setting and no random state is changed.

    Args:
        quick: under two seconds; otherwise more repetitions, some five times as long.
    """
    where = torch.device(device)
    key = (str(where), torch.get_num_threads(), quick)
    if key not in _measured:
        with torch.inference_mode(False), torch.no_grad():
            _measured[key] = _measure(where, 5 if quick else 25)
    return _measured[key]


def _measure(device: torch.device, repeats: int) -> Peaks:
    cuda = device.type == "cuda"
    small = tuple(int(MIB * size) for size in ((4, 8, 16, 32) if cuda else (1 / 16, 1 / 4, 1, 4)))
    copied, added = memory_rates(device, 256 * MIB if cuda else 64 * MIB, repeats)
    launch_s = launch_seconds(device, repeats)
    return Peaks(
        device=str(device),
        matmul=matmul_rates(device, repeats),
        copy=copied,
        launch_s=launch_s,
        python_s=python_call_seconds(repeats),
        upload=pinned_rate(device, repeats, up=True) if cuda else None,
        download=pinned_rate(device, repeats, up=False) if cuda else None,
        cache=max(copied, added, *(rate for size in small for rate in memory_rates(device, size, repeats))),
        least_s=min(launch_s, least_seconds(device, repeats)),
    )


def best_seconds(call: Callable[[], object], device: torch.device, calls: int, repeats: int) -> float:
    """Seconds a call until the device has done it: the best of `repeats` runs of `calls` calls, after one that is not counted."""
    _run_seconds(call, device, calls)
    best, start = float("inf"), time.perf_counter()
    for _ in range(repeats):
        best = min(best, _run_seconds(call, device, calls))
        if time.perf_counter() - start > ENOUGH_S:
            break
    return best / calls


def _run_seconds(call: Callable[[], object], device: torch.device, calls: int, queued: bool = False) -> float:
    synchronize(device)
    start = time.perf_counter()
    for _ in repeat(None, calls):
        call()
    if not queued:
        synchronize(device)
    return time.perf_counter() - start


def matmul_rates(device: torch.device, repeats: int) -> dict[str, float]:
    """Operations a second of square products by type of number; on CUDA also "tf32": float32 rounded to 10 bits on the way."""
    cuda = device.type == "cuda"
    with Precision(matmul="highest" if cuda else None).setting():
        rates = {
            name: _matmul_rate(device, repeats, kind) for name, kind in (CUDA_TYPES if cuda else CPU_TYPES).items()
        }
    if cuda:
        with Precision(matmul="high").setting():
            rates["tf32"] = _matmul_rate(device, repeats, torch.float32)
    return rates


def _matmul_rate(device: torch.device, repeats: int, dtype: torch.dtype) -> float:
    sizes = peak_sizes(device)
    best = matmul_peak(device, sizes[:1], repeats, dtype)
    for size in sizes:
        product_s = 2 * size**3 / best
        if product_s * repeats > LONG_S:  # some processors have no instructions for a type
            break
        often = max(repeats, min(200, int(ENOUGH_S / 2 / product_s)))  # where others run too, a few would tell little
        best = max(best, matmul_peak(device, (size,), often, dtype))
    return best


def memory_rates(device: torch.device, size: int, repeats: int) -> tuple[float, float]:
    """Bytes a second read and written by a copy, and by a sum of two tensors, of `size` bytes."""
    one, two, out = (torch.zeros(size // 4, dtype=torch.float32, device=device) for _ in range(3))
    calls = max(1, 4 * MIB // size) if device.type == "cpu" else 20
    copied = 2 * size / best_seconds(lambda: out.copy_(one), device, calls, repeats)
    added = 3 * size / best_seconds(lambda: torch.add(one, two, out=out), device, calls, repeats)
    return copied, added


def pinned_rate(device: torch.device, repeats: int, up: bool, size: int = 64 * MIB) -> float:
    """Bytes a second from pinned host memory to the device, or back."""
    host = torch.zeros(size, dtype=torch.uint8, device="cpu", pin_memory=True)
    there = torch.zeros(size, dtype=torch.uint8, device=device)
    target, source = (there, host) if up else (host, there)
    return size / best_seconds(lambda: target.copy_(source, non_blocking=True), device, 1, repeats)


def launch_seconds(device: torch.device, repeats: int) -> float:
    """Seconds of the smallest operator called from Python: one number, in place; on CUDA until it is queued."""
    number = torch.zeros(1, dtype=torch.float32, device=device)
    return min(_run_seconds(number.neg_, device, FEW, queued=True) for _ in range(4 * repeats)) / FEW


def least_seconds(device: torch.device, repeats: int) -> float:
    """Seconds of the smallest operator called from C++, without Python's part; on CUDA until it is queued.

    torch._foreach_mul_ over tensors of two types has no kernel of its own: it calls `mul_` for one after another.
    """
    numbers = [
        torch.zeros(1, dtype=dtype, device=device) for _ in range(FEW // 2) for dtype in (torch.float32, torch.float64)
    ]

    def each() -> None:
        torch._foreach_mul_(numbers, numbers)

    return min(_run_seconds(each, device, 1, queued=True) for _ in range(4 * repeats)) / len(numbers)


def python_call_seconds(repeats: int, calls: int = 5_000) -> float:
    """Seconds of a call of a Python function that does nothing, the loop around it included."""

    def nothing() -> None:
        pass

    return best_seconds(nothing, torch.device("cpu"), calls, 4 * repeats)


def show_peaks(peaks: Peaks) -> list[tuple[str, str]]:
    """(what, how much) of each that was measured, for people."""
    rows = [(f"matrix products, {name}", f"{rate / 1e9:,.3g} GFLOP/s") for name, rate in peaks.matmul.items()]
    rates = {
        "memory, large tensors": peaks.copy,
        "memory, tensors that fit a cache": peaks.cache,
        "host to device, pinned": peaks.upload,
        "device to host, pinned": peaks.download,
    }
    rows += [(what, f"{rate / 1e9:,.3g} GB/s") for what, rate in rates.items() if rate is not None]
    calls = {"smallest operator": peaks.launch_s, "the same from C++": peaks.least_s, "Python call": peaks.python_s}
    return rows + [(what, f"{seconds * 1e6:,.3g} µs") for what, seconds in calls.items() if seconds is not None]
