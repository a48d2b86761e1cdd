from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from rlbench import measure as module
from rlbench.measure import NO_CUDA, format_table, measure
from rlbench.speedups import SPEEDUPS, Choices
from rlbench.speedups.speedup import Speedup, check_equal, no_needs
from rlbench.timing import BASELINE, Paired


def double(values):
    return values * 2


def add_twice(values):
    return values + values


def triple(values):
    return values * 3


def fails(values):
    raise ZeroDivisionError("by design")


def planted(variants, **changes):
    """A slot that doubles a vector."""
    speedup = Speedup(
        name="planted",
        question="?",
        summary="-",
        variants=variants,
        make_inputs=lambda size, seed, device: torch.arange(size, dtype=torch.float64) + seed + 1,
        bind=lambda variant, inputs: lambda: variant(inputs),
        check=check_equal,
        requires=no_needs,
        sameness="bitwise",
        sizes=(1, 5),
        size_means="numbers",
    )
    return {"planted": replace(speedup, **changes)}


def run(speedups, **options):
    defaults = {"device": "cpu", "quick": True, "rounds": 5, "progress": False}
    return measure(speedups=speedups, **{**defaults, **options})


def by_variant(rows):
    return {row["variant"]: row for row in rows}


@dataclass
class FakeTimes:
    """Stands in for time_paired: given seconds a call for each variant, in five rounds."""

    seconds: dict

    def __call__(self, baseline, variants, **options):
        names = (BASELINE, *variants, "baseline again")
        row = [self.seconds[n] for n in names]
        return Paired(names, np.tile(row, (5, 1)), (1,) * len(names), dict.fromkeys(names, 0.0))


def test_a_row_for_each_variant_with_all_keys():
    rows = run(planted({"loop": double, "sum": add_twice}), seed=7)
    first = by_variant(rows)["loop"]
    keys = """slot variant baseline size device median_us ratio ratio_low ratio_high aa_low aa_high compile_s same verdict
        rounds round_times not_measured error quick machine threads load steal versions commit dirty seeds time command"""
    assert set(keys.split()) <= set(first)
    assert [row["variant"] for row in rows] == ["loop", "sum"]
    assert all(row["slot"] == "planted" and row["kind"] == "measure" and row["baseline"] == "loop" for row in rows)
    assert all(row["same"] is True and row["size"] == 1 and row["device"] == "cpu" and row["quick"] for row in rows)
    assert all(row["rounds"] == 5 and len(row["round_times"]) == 5 and row["seeds"] == [7] for row in rows)
    assert all(row["ratio_low"] <= row["ratio"] <= row["ratio_high"] and row["compile_s"] >= 0 for row in rows)
    assert len(first["again_times"]) == 5 and first["verdict"] == "baseline"


def test_ratios_and_verdicts_from_given_times(monkeypatch):
    seconds = {BASELINE: 4e-6, "baseline again": 4e-6, "slower": 8e-6, "faster": 1e-6, "even": 4e-6}
    monkeypatch.setattr(module, "time_paired", FakeTimes(seconds))
    rows = by_variant(run(planted({"base": double, "slower": double, "faster": double, "even": double})))
    found = {name: (row["ratio"], row["median_us"], row["verdict"]) for name, row in rows.items()}
    assert found == {
        "base": (pytest.approx(1), pytest.approx(4), "baseline"),
        "slower": (pytest.approx(0.5), pytest.approx(8), "slower"),
        "faster": (pytest.approx(4), pytest.approx(1), "faster"),
        "even": (pytest.approx(1), pytest.approx(4), "no difference seen"),
    }
    lines = format_table(list(rows.values())).splitlines()
    assert "0.500x" in lines[3] and lines[3].endswith("slower"), "a ratio below 1 has its line like the others"


def test_what_is_not_the_same_is_not_timed():
    variants = {"loop": double, "wrong": triple, "broken": fails, "sum": add_twice}
    rows = by_variant(run(planted(variants)))
    wrong, broken = rows["wrong"], rows["broken"]
    assert wrong["same"] is False and wrong["verdict"] == "not the same" and "differs from loop" in wrong["error"]
    assert broken["same"] is False and broken["verdict"] == "failed"
    assert broken["error"] == "ZeroDivisionError: by design"
    for row in (wrong, broken):
        assert row["ratio"] is row["median_us"] is row["aa_low"] is None
        assert row["round_times"] == [] and row["rounds"] == 0
    assert rows["sum"]["same"] is True and rows["sum"]["rounds"] == 5


def test_each_variant_gets_inputs_of_its_own():
    def in_place(values):
        return values.mul_(2).clone()

    speedups = planted({"loop": double, "in_place": in_place, "sum": add_twice})
    assert all(row["same"] for row in run(speedups))


def test_a_variant_that_fails_only_when_repeated_is_left_out():
    def once(values):
        if values[0] < 0:
            raise RuntimeError("second call")
        values_out = values * 2
        values.fill_(-1)
        return values_out

    rows = by_variant(run(planted({"loop": double, "once": once, "sum": add_twice})))
    assert rows["once"]["verdict"] == "failed" and "second call" in rows["once"]["error"]
    assert rows["once"]["same"] is False and rows["once"]["ratio"] is None
    assert rows["sum"]["rounds"] == 5


def test_a_baseline_that_fails_leaves_the_others_unmeasured_but_checked():
    rows = by_variant(run(planted({"broken": fails, "loop": double, "wrong": triple})))
    assert rows["broken"]["verdict"] == "failed"
    assert rows["loop"]["same"] is True and rows["loop"]["verdict"] == "not measured"
    assert rows["loop"]["not_measured"] == "its baseline 'broken' could not be timed"
    assert rows["wrong"]["verdict"] == "not the same"


def test_what_needs_cuda_says_so(monkeypatch):
    def requires(variant, choices, config, device, env):
        return "pinning needs CUDA, and this runs on cpu" if variant == "pinned" else None

    speedups = planted({"pageable": double, "pinned": fails}, requires=requires)
    monkeypatch.setattr(module, "describe", lambda **kw: replace_cuda("no_gpu"))
    row = by_variant(run(speedups))["pinned"]
    assert row["not_measured"] == NO_CUDA == "needs CUDA: not measured on this machine"
    assert row["same"] is None and row["ratio"] is None and row["error"] is None
    assert format_table([row]).splitlines()[2].endswith(NO_CUDA)
    # CUDA is there, but the CPU was asked for: the slot's own reason is the truth.
    monkeypatch.setattr(module, "describe", lambda **kw: replace_cuda("cuda"))
    assert by_variant(run(speedups))["pinned"]["not_measured"].startswith("pinning needs CUDA, and")


def replace_cuda(status):
    from rlbench.machine import describe

    return replace(describe(steal_interval_s=0), cuda=status)


def test_sizes_rounds_and_quick(monkeypatch):
    asked = []

    def fake(baseline, variants, **options):
        asked.append((options["rounds"], options["min_round_s"]))
        return FakeTimes({BASELINE: 1.0, "baseline again": 1.0})(baseline, variants)

    monkeypatch.setattr(module, "time_paired", fake)
    speedups = planted({"loop": double})
    assert [row["size"] for row in run(speedups, quick=True, rounds=20)] == [1]
    assert [row["size"] for row in run(speedups, quick=False, rounds=20)] == [1, 5]
    assert [row["size"] for row in run(speedups, quick=True, rounds=3, sizes=(2, 3))] == [2, 3]
    assert asked == [(7, 0.005), (20, 0.02), (20, 0.02), (3, 0.005), (3, 0.005)]


def test_stop_and_rows_as_they_come():
    seen = []
    rows = run(planted({"loop": double}), quick=False, on_row=seen.append, should_stop=lambda: bool(seen))
    assert [row["size"] for row in rows] == [1] and seen == rows
    assert run(planted({"loop": double}), should_stop=lambda: True) == []


def test_stopped_before_a_round_was_complete():
    calls = []

    def stop():
        calls.append(1)
        return len(calls) > 3

    (row,) = run(planted({"loop": double}), should_stop=stop)
    assert row["same"] is True and row["rounds"] == 0
    assert row["not_measured"] == "stopped before a round was complete"


def test_unknown_slots_bad_sizes_and_devices_are_refused():
    with pytest.raises(ValueError, match="no slot 'plantde'; slots are planted"):
        run(planted({"loop": double}), slots=["plantde"])
    with pytest.raises(ValueError, match="size 0"):
        run(planted({"loop": double}), sizes=[4, 0])
    with pytest.raises(ValueError, match="rounds=0"):
        run(planted({"loop": double}), rounds=0)
    with pytest.raises(ValueError, match="accepted"):
        run(planted({"loop": double}), device="tpu")


def test_the_real_slots_are_measured_against_plain(monkeypatch):
    def fake(baseline, variants, **options):
        names = (BASELINE, *variants, "baseline again")
        return Paired(names, np.ones((5, len(names))), (1,) * len(names), dict.fromkeys(names, 0.0))

    monkeypatch.setattr(module, "time_paired", fake)
    monkeypatch.setattr("rlbench.compile.BACKEND", "eager")  # nothing is generated: seconds instead of minutes
    rows = measure(device="cpu", quick=True, progress=False)
    plain = Choices.plain("cpu")
    assert {row["slot"] for row in rows} == set(SPEEDUPS)
    for row in rows:
        assert row["baseline"] == getattr(plain, row["slot"])
        assert row["same"] is True or row["not_measured"], row["error"]
    assert sum(row["verdict"] == "baseline" for row in rows) == len(SPEEDUPS)


def test_a_slot_or_size_named_twice_is_measured_once():
    rows = run(planted({"loop": double}), slots=["planted", "planted"], sizes=[3, 2, 3])
    assert len(run(planted({"loop": double}), slots="planted")) == 1
    assert [row["size"] for row in rows] == [3, 2]
