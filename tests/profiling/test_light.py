from dataclasses import replace

import pytest
import torch

from rlbench.profiling.light import ALL, speed_of_light
from rlbench.profiling.limits import Peaks
from rlbench.profiling.records import Counted, PhaseTime, Product, Work

CPU = Peaks("cpu", {"float32": 100.0, "bfloat16": 400.0}, copy=10.0, launch_s=2.0, python_s=1.0)
CUDA = Peaks("cuda:0", {"float32": 100.0, "tf32": 800.0, "bfloat16": 1600.0}, copy=10.0, launch_s=2.0, python_s=1.0)


def counted(*work, steps=10, updates=5, products=()):
    return Counted(steps, updates, 1.0, 5.0, (), (), tuple(products), tuple(work))


def phases(**seconds):
    return [PhaseTime(name, spent, 0.0, 1) for name, spent in seconds.items()]


def by_name(rows):
    return {row.phase: row for row in rows}


def test_rows_are_of_one_step_and_the_floor_is_the_largest_of_three():
    work = [Work("forward", 5_000, 100, 10), Work("optimizer", 10, 500, 10), Work("action", 10, 10, 20)]
    rows = by_name(speed_of_light(phases(env=36, forward=40, optimizer=80, action=16), counted(*work), 4, CPU))
    assert list(rows) == ["forward", "optimizer", "action", ALL]  # env has no work
    forward = rows[
        "forward"
    ]  # 500 operations at 100 a second, 10 bytes at 10, 1 operator of 2 seconds; 10 seconds a step
    assert (forward.flops, forward.bytes, forward.ops, forward.seconds) == (500, 10, 1, 10)
    assert (forward.floor_s, forward.bound, forward.share) == (5.0, "arithmetic", 0.5)
    assert (rows["optimizer"].floor_s, rows["optimizer"].bound, rows["optimizer"].share) == (5.0, "memory", 0.25)
    assert (rows["action"].floor_s, rows["action"].bound, rows["action"].share) == (4.0, "launches", 1.0)
    total = rows[ALL]  # (5000 + 20) / 10 / 100 = 5.02; 61 / 10 = 6.1; (1 + 1 + 2) * 2 = 8; 172 / 4 = 43 seconds
    assert (total.flops, total.bytes, total.ops, total.seconds) == (502, 61, 4, 43)
    assert (total.floor_s, total.bound, total.share) == (8.0, "launches", pytest.approx(8 / 43))


def test_the_fastest_memory_and_the_cheapest_call_bound_where_they_are_known():
    peaks = Peaks("cpu", {"float32": 100.0}, copy=10.0, launch_s=2.0, python_s=1.0, cache=40.0, least_s=0.5)
    rows = by_name(speed_of_light(phases(store=8), counted(Work("store", 0, 800, 30)), 1, peaks))
    assert (rows["store"].floor_s, rows["store"].bound) == (2.0, "memory")  # 80 / 40; three operators of 0.5


def test_a_type_has_its_own_peak_and_an_unmeasured_one_the_fastest():
    work = [Work("forward", 8_000, 0, 0, "bfloat16"), Work("backward", 8_000, 0, 0, "float64")]
    rows = by_name(speed_of_light(phases(forward=4, backward=4), counted(*work), 1, CPU))
    assert rows["forward"].floor_s == rows["backward"].floor_s == 2.0
    assert rows[ALL].floor_s == 4.0


@pytest.fixture
def convolutions():
    """torch's setting for convolutions on CUDA, put back afterwards."""
    setting = torch.backends.cudnn.conv
    before = setting.fp32_precision
    yield setting
    setting.fp32_precision = before


@pytest.mark.parametrize(
    ("setting", "convolved", "floor"), [("ieee", True, 16.0), ("tf32", False, 16.0), ("tf32", True, 2.0)]
)
def test_float32_that_torch_may_round_is_held_against_the_rounded_peak(convolutions, setting, convolved, floor):
    convolutions.fp32_precision = setting
    layer = Product("forward", 2, 3, 4, 10, True, convolution=convolved)
    done = counted(Work("forward", 16_000, 0, 0), products=[layer])
    assert speed_of_light(phases(forward=100), done, 1, CUDA)[-1].floor_s == floor


def test_on_a_gpu_a_phase_is_bound_by_its_launches_alone():
    rows = by_name(speed_of_light(phases(forward=3, sync=97), counted(Work("forward", 50_000, 30, 10)), 1, CUDA))
    assert (rows["forward"].floor_s, rows["forward"].bound) == (
        2.0,
        "launches",
    )  # not 50: its kernels run while we wait
    assert (rows[ALL].floor_s, rows[ALL].bound, rows[ALL].share) == (50.0, "arithmetic", 0.5)


def test_work_of_calls_that_do_not_dispatch_is_of_one_step_and_not_counted_twice():
    done = counted(Work("update", 1_000, 50, 10))
    rows = by_name(speed_of_light(phases(update=8), done, 2, CPU, [Work("update", 300, 0, 0)]))
    assert (rows["update"].flops, rows["update"].bytes, rows["update"].ops) == (300, 5, 1)
    rows = by_name(speed_of_light(phases(iterations=8), None, 2, CPU, [Work("iterations", 200, 0, 0)]))
    assert (rows["iterations"].floor_s, rows["iterations"].seconds) == (2.0, 4.0)


def test_parts_of_a_fused_call_and_work_without_time_have_no_row_but_all_work_is_in_the_total():
    run = [PhaseTime("update", 10, 1.0, 1), PhaseTime("forward", 5, 0.5, 1, part_of="update")]
    work = [Work("update", 1_000, 0, 0), Work("forward", 2_000, 0, 0), Work("gap", 3_000, 0, 0)]
    rows = by_name(speed_of_light(run, counted(*work), 1, CPU))
    assert list(rows) == ["update", ALL]
    assert rows[ALL].flops == 600 and rows[ALL].seconds == 10


def test_without_an_env_a_step_is_an_update():
    rows = speed_of_light(phases(forward=5), counted(Work("forward", 600, 0, 0), steps=0, updates=3), 1, CPU)
    assert rows[0].flops == 200


@pytest.mark.parametrize(
    ("run", "done", "steps"),
    [
        (phases(env=1), counted(), 3),
        (phases(), counted(Work("forward", 1, 1, 1)), 3),
        (phases(forward=1), counted(Work("forward", 1, 1, 1)), 0),
        (phases(forward=1), counted(Work("forward", 0, 0, 0)), 2),
        (phases(forward=1), counted(Work("forward", 1, 1, 1), steps=0, updates=0), 2),
        (phases(forward=1), None, 2),
    ],
)
def test_nothing_counted_or_measured_gives_no_rows(run, done, steps):
    assert speed_of_light(run, done, steps, CPU) == ()


def test_of_what_runs_compiled_arithmetic_alone_is_a_bound():
    work = [Work("forward", 1_000, 900, 90), Work("backward", 2_000, 900, 90), Work("store", 0, 100, 10)]
    done = replace(counted(*work), uncompiled=("forward",))
    rows = by_name(speed_of_light(phases(forward=10, backward=10, store=10), done, 1, CPU))
    # 100 operations and 200 at 100 a second; in store one operator of 2 seconds, 10 bytes at 10
    assert [(rows[n].floor_s, rows[n].bound) for n in ("forward", "backward")] == [(1, "arithmetic"), (2, "arithmetic")]
    assert (rows["store"].floor_s, rows["store"].bound) == (2, "launches")
    assert (rows[ALL].floor_s, rows[ALL].bound, rows[ALL].ops) == (3, "arithmetic", 19)


def test_work_that_cannot_have_been_done_in_the_time_is_no_floor():
    work = [Work("python", 0, 10, 300), Work("forward", 2_000, 10, 10)]
    rows = by_name(speed_of_light(phases(python=1, forward=9), counted(*work), 1, CPU))
    assert list(rows) == ["forward", ALL], "30 operators of 2 seconds do not fit into one second"
    assert (rows[ALL].floor_s, rows[ALL].share) == (2.0, 0.2)


def test_no_more_than_all_of_the_time_is_reached():
    # 11 seconds by peaks that vary, 10 seconds by the clock
    row = speed_of_light(phases(forward=10), counted(Work("forward", 11_000, 10, 10)), 1, CPU)[0]
    assert (row.floor_s, row.share) == (10, 1.0)
