import gc
import math

import numpy as np
import pytest
import torch

from rlbench import timing
from rlbench.timing import BASELINE, BASELINE_AGAIN, VariantError, compare, time_paired


class Machine:
    """A simulated clock; `works(seconds)` makes a callable that lets time pass."""

    def __init__(self):
        self.now = 0
        self.log = []

    def __call__(self):
        return self.now

    def works(self, seconds, name="", first=None):
        state = {"calls": 0}

        def call():
            spent = first if first is not None and state["calls"] == 0 else seconds
            state["calls"] += 1
            self.now += round(spent * 1e9)
            self.log.append(name)

        return call


def test_both_conditions_are_needed():
    rng = np.random.default_rng(0)
    base = np.ones(20)
    steady = np.full(20, 0.98) * np.exp(rng.normal(0, 0.001, 20))
    wild = np.exp(rng.normal(0, 0.3, 20))
    quiet = np.exp(rng.normal(0, 0.001, 20))
    assert compare(base, steady, quiet).verdict == "faster"
    inside_band = compare(base, steady, wild)
    assert inside_band.low > 1 and inside_band.verdict == "no difference seen"
    assert compare(base, 0.98 * wild, quiet).verdict == "no difference seen"  # its own interval contains 1


def test_ratio_by_hand():
    base, variant = np.array([2.0, 4.0, 6.0, 8.0, 10.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    found = compare(base, variant, base)
    assert (found.ratio, found.low, found.high) == pytest.approx((2, 2, 2))
    assert (found.aa_low, found.aa_high, found.verdict) == (1, 1, "faster")
    assert compare(variant, base, variant).ratio == pytest.approx(0.5)
    assert compare(variant, base, variant).verdict == "slower"
    # Log-ratios 0, log 2, log 8: the median is log 2, not the mean.
    assert compare(np.array([1.0, 2.0, 8.0]), np.ones(3), np.ones(3)).ratio == pytest.approx(2)


def test_band_is_symmetric_and_holds_the_pair():
    base = np.ones(5)
    found = compare(base, base / 3, base / 1.25)  # the second run of the baseline was 1.25 times as fast in every round
    assert (found.aa_low, found.aa_high) == pytest.approx((0.8, 1.25))
    assert found.verdict == "faster"
    assert compare(base, base / 1.2, base / 1.25).verdict == "no difference seen"


def test_too_few_rounds_say_so():
    for rounds in (0, 1, 4):
        ones = np.ones(rounds)
        assert compare(ones, ones / 9, ones).verdict == "too few rounds"
    assert math.isnan(compare(np.ones(0), np.ones(0), np.ones(0)).ratio)
    with pytest.raises(ValueError, match="different numbers"):
        compare(np.ones(5), np.ones(4), np.ones(5))


def test_time_a_call_calls_and_first_call():
    machine = Machine()
    paired = time_paired(
        machine.works(0.001, first=3.0),
        {"half": machine.works(0.0005), "slow": machine.works(0.5)},
        rounds=6,
        min_round_s=0.01,
        clock=machine,
    )
    assert paired.names == (BASELINE, "half", "slow", BASELINE_AGAIN)
    assert paired.seconds.shape == (6, 4)
    assert np.allclose(paired.seconds, [0.001, 0.0005, 0.5, 0.001])
    assert paired.first_call_s == {BASELINE: 3.0, "half": 0.0005, "slow": 0.5}
    calls = dict(zip(paired.names, paired.calls, strict=True))
    assert 10 <= calls[BASELINE] <= 11 and 20 <= calls["half"] <= 22 and calls["slow"] == 1
    assert calls[BASELINE_AGAIN] == calls[BASELINE]
    assert paired.ratio("half").ratio == pytest.approx(2)
    assert paired.ratio("slow").verdict == "slower"
    assert paired.ratio(BASELINE_AGAIN).verdict == "no difference seen"
    assert paired.median_s("slow") == 0.5
    assert not paired.stopped
    rows = paired.rows()
    assert len(rows) == 24 and rows[-1]["round"] == 5 and rows[-1]["name"] == BASELINE_AGAIN
    with pytest.raises(KeyError, match="slow"):
        paired.ratio("fast")


def order_of_rounds(seed):
    machine = Machine()
    variants = {"a": machine.works(1, "a"), "b": machine.works(1, "b")}
    time_paired(machine.works(1, "base"), variants, rounds=30, min_round_s=0.5, seed=seed, clock=machine)
    timed = machine.log[6:]  # behind first calls and calibration
    return [tuple(timed[i : i + 4]) for i in range(0, len(timed), 4)]


def test_rounds_hold_everything_once_in_a_random_order_from_the_seed():
    rounds = order_of_rounds(0)
    assert len(rounds) == 31  # one to warm up
    assert all(sorted(r) == ["a", "b", "base", "base"] for r in rounds)
    assert len(set(rounds)) >= 8
    assert order_of_rounds(0) == rounds != order_of_rounds(1)


def test_warm_up_round_is_not_kept():
    machine = Machine()
    paired = time_paired(machine.works(1), {}, rounds=1, min_round_s=0.5, clock=machine)
    assert paired.seconds.shape == (1, 2)
    assert len(machine.log) == 2 + 2 * 2


def test_a_callable_that_takes_no_time_does_not_hang_the_calibration():
    machine = Machine()
    tick = machine.works(0.0)

    def coarse():  # the clock moves on every thousandth call only
        tick()
        machine.now += 1_000_000 if len(machine.log) % 1000 == 0 else 0

    paired = time_paired(coarse, {}, rounds=2, min_round_s=0.002, clock=machine)
    assert np.allclose(paired.seconds, 1e-6, rtol=0.5)


def test_stop_keeps_complete_rounds_only():
    machine = Machine()
    done = []
    paired = time_paired(
        machine.works(1),
        {"a": machine.works(1)},
        rounds=10,
        min_round_s=0.5,
        clock=machine,
        progress=lambda n, total: done.append((n, total)),
        should_stop=lambda: len(machine.log) >= 4 + 3 + 3 * 2 + 1,  # one timing into the third kept round
    )
    assert paired.stopped and paired.rounds == 2 and paired.seconds.shape == (2, 3)
    assert done == [(1, 10), (2, 10)]
    early = time_paired(machine.works(1), {}, clock=machine, should_stop=lambda: True)
    assert early.stopped and early.rounds == 0 and math.isnan(early.median_s(BASELINE))
    assert early.ratio(BASELINE_AGAIN).verdict == "too few rounds"


def test_collector_is_off_while_timing_and_restored_after_an_error():
    states = []
    time_paired(lambda: states.append(gc.isenabled()), {}, rounds=1, min_round_s=1e-6)
    assert not any(states) and gc.isenabled()

    def fails():
        raise ZeroDivisionError("no")

    with pytest.raises(VariantError, match=r"'bad'.*ZeroDivisionError: no") as caught:
        time_paired(lambda: None, {"bad": fails}, rounds=1, min_round_s=1e-6)
    assert caught.value.name == "bad" and gc.isenabled()
    gc.disable()
    try:
        time_paired(lambda: None, {}, rounds=1, min_round_s=1e-6)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_device_is_idle_at_both_ends_of_a_timing(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(timing, "synchronize", lambda device: machine.log.append(f"wait {device}"))
    time_paired(machine.works(1, "call"), {}, rounds=1, min_round_s=0.5, device="cuda:1", clock=machine)
    assert machine.log == ["wait cuda:1", "call", "wait cuda:1"] * 6


def test_synchronize_waits_for_cuda_only(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    timing.synchronize("cpu")
    assert waited == []
    timing.synchronize("cuda:0")
    assert waited == [torch.device("cuda:0")]
    with pytest.raises(ValueError, match="'mps' cannot be timed"):
        timing.synchronize("mps")


def test_bad_arguments_are_refused():
    for name in (BASELINE, BASELINE_AGAIN):
        with pytest.raises(ValueError, match="reserved"):
            time_paired(lambda: None, {name: lambda: None})
    with pytest.raises(ValueError, match="rounds=0"):
        time_paired(lambda: None, {}, rounds=0)
    with pytest.raises(ValueError, match="min_round_s=0"):
        time_paired(lambda: None, {}, min_round_s=0)


def test_no_random_generator_is_touched():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    time_paired(lambda: None, {"a": lambda: None}, rounds=5, min_round_s=1e-5).ratio("a")
    assert torch.equal(before[0], torch.get_rng_state()) and (before[1] == np.random.get_state()[1]).all()
