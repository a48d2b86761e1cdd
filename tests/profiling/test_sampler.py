import sys
import threading
import time

import pytest

from rlbench.profiling.sampler import Sampler


def sample_here(sampler, phase):
    sampler.look(sys._getframe(), phase)


def draw(sampler, phase):
    sampler.look(sys._getframe(), phase)


def recursive(sampler, depth):
    if depth:
        recursive(sampler, depth - 1)
    else:
        sampler.look(sys._getframe(), "env")


def test_shares_of_planted_samples():
    sampler = Sampler(lambda: "env")
    for _ in range(3):
        draw(sampler, "env")
    sample_here(sampler, "sample")
    lines = {line.place.function: line for line in sampler.lines() if line.place.function in ("draw", "sample_here")}
    assert (lines["draw"].own, lines["draw"].total, lines["draw"].phase) == (0.75, 0.75, "env")
    assert (lines["sample_here"].own, lines["sample_here"].phase) == (0.25, "sample")
    here = [line for line in sampler.lines() if line.place.function == "test_shares_of_planted_samples"]
    assert {(line.own, line.total) for line in here} == {(0.0, 0.75), (0.0, 0.25)}


def test_gaps_are_named_for_what_runs_in_them():
    sampler = Sampler(lambda: "gap")
    draw(sampler, "gap")
    draw(sampler, "gap")
    sample_here(sampler, "gap")
    assert sampler.gaps == {"sample": 3}
    recursive(sampler, 0)
    assert sampler.count == 4 and sampler.gaps.total() == 3


def test_recursion_counts_a_line_once():
    sampler = Sampler(lambda: "env")
    recursive(sampler, 5)
    assert max(line.total for line in sampler.lines()) == 1.0


def test_nothing_seen_gives_no_lines():
    assert Sampler(lambda: "env").lines() == ()


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))


def test_a_hot_function_is_found_and_the_interpreter_left_as_it_was():
    before = sys.getswitchinterval()
    sampler = Sampler(lambda: "env", interval_s=0.002)
    for _ in range(2):
        sampler.start()
        sampler.start()
        busy(0.15)
        sampler.stop()
        sampler.stop()
    assert sys.getswitchinterval() == before
    found = sum(line.own for line in sampler.lines() if line.place.function == "busy")
    assert sampler.count > 5 and found > 0.5
    assert sampler.cost_s > 0


def test_while_the_clock_looks_away_nothing_is_counted():
    sampler = Sampler(lambda: "", interval_s=0.002)
    sampler.start()
    busy(0.05)
    sampler.stop()
    assert sampler.count == 0


@pytest.mark.parametrize("own_thread", [True, False])
def test_it_looks_at_one_thread(own_thread):
    ready, done = threading.Event(), threading.Event()

    def other():
        ready.set()
        done.wait()

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    sampler = Sampler(lambda: "env", interval_s=0.002, thread_id=None if own_thread else thread.ident)
    sampler.start()
    busy(0.1)
    sampler.stop()
    done.set()
    thread.join()
    assert {"busy": own_thread, "other": not own_thread} == {
        name: any(line.place.function == name for line in sampler.lines()) for name in ("busy", "other")
    }
