from dataclasses import replace

import pytest
from planted import HEALTHY, TWINS, counted, evidence, hot, phases, place

from rlbench.profiling.advice import advise
from rlbench.profiling.advice.gains import bound, duration, gain, percent
from rlbench.profiling.records import Copy, Product, Sync, ThreadProbe, Trace


def faults(found):
    return [advice for advice in found if advice.kind == "fault"]


def first(found):
    return faults(found)[0]


def test_amdahl_by_hand():
    assert gain(0.5) == 2.0 and gain(0.75, 0.2) == pytest.approx(2.5) and gain(0.0) == 1.0
    assert bound(0.9) == pytest.approx(10.0) and gain(1.0) == 1e4
    assert [duration(s) for s in (0.0306, 2.4e-6, 5e-10, 3.0)] == ["30.6 ms", "2.4 µs", "0.5 ns", "3 s"]
    assert [percent(s) for s in (0.5, 0.055)] == ["50 %", "5.5 %"]


def test_a_healthy_run_has_no_fault():
    assert faults(advise(evidence())) == []


def test_nothing_measured_gives_no_advice():
    bare = evidence(
        counted=None,
        trace=None,
        twins=None,
        peaks=None,
        light=(),
        lines=(),
        overhead=None,
        steps=0,
        updates=0,
        seconds=0.0,
        phases=(),
    )
    assert advise(bare) == ()


def test_an_env_that_waits():
    shares = {name: share * 0.1 for name, share in HEALTHY.items()} | {"env": 0.91}
    found = first(
        advise(
            evidence(
                shares,
                phases=phases(shares, cpu=0.1),
                lines=(hot("time.sleep(0.03)", 0.9, 0.9, "env", function="step"),),
                twins=replace(TWINS, after_wait=1.5),
            )
        )
    )
    assert found.name == "env_waits" and found.places[0].source == "time.sleep(0.03)"
    # 9.1 s of which 0.1 s work: 9 of 10 s are waited, what is left runs 1.5 times as fast without
    assert found.predicted_gain == pytest.approx(10 * 1.5)


def test_worker_processes_that_are_waited_for_are_no_fault():
    shares = {name: share * 0.5 for name, share in HEALTHY.items()} | {"env": 0.55}
    line = hot("pipe.recv()", 0.5, 0.5, "env", file="lib/vector/async_vector_env.py", whose="library")
    assert faults(advise(evidence(shares, phases=phases(shares, cpu=0.1), lines=(line,)))) == []


def test_reads_at_every_step():
    syncs = [
        Sync(place("losses.append(loss.item())"), ".item()", "python", 100, 1.0),
        Sync(place("action = int(q.argmax())"), "int(t)", "action", 100, 1.0),
        Sync(place("print(loss)"), "print(t)", "python", 1, 0.01),
        Sync(place("x.item()", whose="library"), ".item()", "forward", 100, 1.0),
    ]
    found = first(advise(evidence(counted=counted(syncs))))
    assert (found.name, found.predicted_gain, len(found.places)) == ("sync_each_step", 1.0, 1)
    assert found.places[0].source == "losses.append(loss.item())"


def test_on_a_gpu_a_read_costs_its_wait():
    syncs = [Sync(place("loss.item()"), ".item()", "python", 100, 1.0, wait_s=0.005)]
    found = first(advise(evidence(device="cuda", counted=counted(syncs))))
    assert found.predicted_gain == pytest.approx(2.0), "5 of the 10 ms of a step"


def test_other_numbers_of_threads():
    found = first(advise(evidence(threads=ThreadProbe(8, 2, {1: 0.004, 8: 0.010}))))
    assert found.name == "too_many_threads" and found.predicted_gain == 2.5 and "set_num_threads(1)" in found.instead
    more = [a for a in advise(evidence(threads=ThreadProbe(1, 2, {1: 0.01, 2: 0.02}))) if a.name == "no_more_threads"]
    assert more[0].kind == "against" and more[0].predicted_gain == 0.5
    assert faults(advise(evidence(threads=ThreadProbe(2, 2, {1: 0.0099, 2: 0.010})))) == [], (
        "less than blocks differ by"
    )


def test_a_net_ten_times_too_wide():
    twins = replace(
        TWINS, hidden=(1280, 1280), narrower={1: 1.0, 10: 0.05}, acting={1: 1.0, 10: 0.5}, around={1: 1.0, 10: 0.4}
    )
    shares = {
        "env": 0.01,
        "action": 0.05,
        "sample": 0.01,
        "forward": 0.4,
        "backward": 0.43,
        "optimizer": 0.07,
        "python": 0.03,
    }
    found = first(advise(evidence(shares, twins=twins)))
    assert found.name == "too_wide" and "128-128" in found.instead
    assert found.predicted_gain == pytest.approx(1 / (0.9 * 0.05 + 0.05 * 0.5 + 0.05 * 0.4))


def test_a_minibatch_of_one():
    products = tuple(replace(product, batch=1) for product in counted().products)
    found = first(advise(evidence(counted=counted(products=products), twins=replace(TWINS, batch=1))))
    assert found.name == "small_batch" and found.metric == "transitions learnt a second"
    assert found.predicted_gain == pytest.approx(128 * 10 / 10.2)


def test_there_and_back():
    copies = (Copy("host to device", 50, 500_000, 0.1, 0.2), Copy("device to host", 50, 500_000, 0.1, 0.2))
    found = first(advise(evidence(device="cuda", trace=Trace(50, 0.5, 1.2, (), copies, 500, 1e-5, 0.1, 0.1))))
    assert found.name == "round_trip" and found.predicted_gain == pytest.approx(1 / (1 - 0.3))


def test_acting_with_gradients_on():
    products = (Product("action", 1, 4, 64, 100, True), *counted().products[1:])
    shares = HEALTHY | {"action": 0.4}
    assert first(advise(evidence(shares, counted=counted(products=products)))).name == "grad_while_acting"


def test_for_a_script_no_choice_is_named():
    assert all(not advice.choice for advice in advise(evidence(threads=ThreadProbe(8, 2, {1: 0.004, 8: 0.010}))))
