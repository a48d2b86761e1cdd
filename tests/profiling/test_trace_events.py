import pytest

from rlbench.profiling.records import Copy, Operator
from rlbench.profiling.trace_events import by_range, copies, device_part, innermost, operators, span


def event(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


# Microseconds. Two streams compute; the host waits once, in the phase "action".
CUDA = [
    event("user_annotation", "forward", 0, 100),
    event("cpu_op", "aten::linear", 0, 60),
    event("cpu_op", "aten::addmm", 10, 40),
    event("cuda_runtime", "cudaLaunchKernel", 20, 5, correlation=1),
    event("cpu_op", "aten::relu", 70, 20),
    event("cuda_runtime", "cudaLaunchKernel", 75, 5, correlation=2),
    event("kernel", "gemm", 30, 50, tid=7, correlation=1),
    event("kernel", "relu", 70, 30, tid=8, correlation=2),
    event("user_annotation", "action", 100, 100),
    event("cpu_op", "aten::to", 105, 50),
    event("cuda_runtime", "cudaMemcpyAsync", 110, 5, correlation=3),
    event("cuda_runtime", "cudaStreamSynchronize", 120, 40),
    event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 115, 20, tid=7, correlation=3, bytes=4096),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 150, 10, tid=7, correlation=4, bytes=100),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 155, 10, tid=8, correlation=5, bytes=100),
    {"ph": "M", "name": "process_name", "pid": 1, "args": {}},
    event("cpu_op", "aten::elsewhere", 0, 200, tid=99),
]


def test_a_trace_of_a_gpu_by_hand():
    assert span(CUDA) == pytest.approx(200e-6)
    found = device_part(CUDA, 200e-6)
    assert found["launches"] == 2 and found["kernel_s"] == pytest.approx(40e-6)
    assert found["busy"] == pytest.approx(70 / 200), "30..80 and 70..100 overlap"
    assert found["sync_s"] == pytest.approx(40e-6)
    assert found["sync_by_phase"] == {"action": pytest.approx(40e-6)}


def test_operators_have_their_own_time_and_that_of_their_kernels():
    found = {op.name: op for op in operators(CUDA)}
    assert found["aten::linear"] == Operator("aten::linear", 1, pytest.approx(20e-6), 0.0)
    assert found["aten::addmm"] == Operator("aten::addmm", 1, pytest.approx(40e-6), pytest.approx(50e-6))
    assert found["aten::relu"] == Operator("aten::relu", 1, pytest.approx(20e-6), pytest.approx(30e-6))
    assert found["aten::to"].device_s == pytest.approx(20e-6)


def test_copies_by_direction_and_memory():
    down, up = sorted(copies(CUDA, 200e-6), key=lambda copy: copy.direction)
    assert down == Copy("device to host", 1, 4096, pytest.approx(20e-6), pytest.approx(0.1), False)
    assert up == Copy("host to device", 2, 200, pytest.approx(15e-6), pytest.approx(0.075), True)


def test_without_a_device_nothing_is_invented():
    host = [each for each in CUDA if each.get("cat") in ("cpu_op", "user_annotation")]
    assert device_part(host, 1.0) == {} and copies(host, 1.0) == ()
    assert all(op.device_s is None for op in operators(host))
    assert operators([]) == () and span([]) == 0.0


def test_a_call_outside_all_ranges_is_other():
    assert by_range(CUDA, [event("cuda_runtime", "cudaMemcpy", 300, 7)]) == {"other": pytest.approx(7e-6)}


def test_the_innermost_is_the_shortest_that_holds():
    outer = [event("r", "a", 0, 100), event("r", "b", 10, 20), event("r", "c", 40, 5)]
    inner = [event("k", "x", 12, 3), event("k", "y", 42, 10), event("k", "z", 200, 1)]
    assert [None if e is None else e["name"] for e in innermost(outer, inner)] == ["b", "a", None]
