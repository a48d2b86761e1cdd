"""Counting where a call hides its steps, or its operators."""

import pytest
import torch

from rlbench.profiling.counting import Counting
from rlbench.profiling.text_tables import often, slower


def test_steps_within_one_call_come_from_a_counter():
    counting, told = Counting(lambda: "iterations"), [500, 100]
    counting.counter = lambda: tuple(told)
    counting.start()
    torch.ones(3).sum().item()
    told[:] = [540, 120]
    assert counting.stop()
    counted = counting.counted(0.5)
    assert (counted.steps, counted.updates) == (40, 20)
    assert counted.syncs[0].per_step == pytest.approx(1 / 40)
    counting.start()
    told[:] = [560, 130]
    assert counting.stop() and counting.seen == (60, 30)


def test_steps_that_were_told_come_first():
    counting = Counting(lambda: "env")
    counting.counter = lambda: (1_000, 1_000)
    counting.start()
    counting.step()
    counting.update()
    assert counting.stop() and counting.seen == (1, 1)


def test_phases_that_ran_uncompiled_are_named():
    phase = "forward"
    counting = Counting(lambda: phase)
    double = torch.compile(lambda x: x * 2, backend="eager")
    counting.start()
    torch.compiler.disable(lambda: torch.ones(2) + 1)()
    assert not counting.uncompiled
    double(torch.ones(2))
    phase = "store"
    torch.ones(2).add(1)
    assert counting.stop()
    assert counting.counted(None).uncompiled == ("forward",)


def test_what_is_rare_is_not_never_and_noise_is_no_slowdown():
    assert [often(x) for x in (2.0, 0.25, 0.002, 0.0)] == ["2.00", "0.25", "0.002", "0"]
    assert [slower(x) for x in (2.04, 0.97, 1.01, None)] == [
        ", 2.0 times as slow",
        *[", no slower within the noise"] * 2,
        "",
    ]
