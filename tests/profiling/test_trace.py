import json

import pytest
import torch

from rlbench.profiling.trace import Tracing


def traced(tracing, steps=3):
    tracing.start()
    for _ in range(steps):
        with torch.profiler.record_function("forward"):
            torch.ones(20, 20) @ torch.ones(20, 20)
        tracing.step()
    tracing.stop()
    return tracing


def test_operators_of_a_real_trace(tmp_path):
    tracing = traced(Tracing("cpu"))
    found = tracing.trace(None)
    assert found.steps == 3 and found.slowdown is None and found.launches is None and found.copies == ()
    products = {op.name: op for op in found.operators}
    assert products["aten::mm"].calls == 3 and products["aten::mm"].self_s > 0
    assert tracing.trace(1.0).slowdown == pytest.approx(tracing.seconds / 3)
    tracing.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event.get("name") == "forward" for event in events) >= 3


def test_started_again_the_last_stretch_is_kept():
    tracing = traced(Tracing("cpu"), 5)
    assert traced(tracing, 2).trace(None).steps == 2


def test_a_large_trace_is_cut_and_stays_valid(tmp_path):
    tracing = traced(Tracing("cpu", max_bytes=20_000), 200)
    tracing.save(tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    assert len(text) <= 20_000 and json.loads(text)["traceEvents"]


def test_somebody_else_s_profiler_is_left_alone():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        tracing = Tracing("cpu")
        tracing.start()
        torch.ones(3) + 1
        assert tracing.full
        tracing.stop()
    assert tracing.trace(None) is None and "another profiler" in tracing.why_not
    assert any(event.key == "aten::add" for event in theirs.key_averages())
    with pytest.raises(RuntimeError, match="another profiler"):
        tracing.save("nowhere.json")
