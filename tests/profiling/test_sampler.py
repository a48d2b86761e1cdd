import sys
import threading
import time
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch

from rlbench.profiling import clock as own_module
from rlbench.profiling.frames import is_own
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


class Code(NamedTuple):
    co_filename: str
    co_name: str
    co_firstlineno: int


def planted(*lines):
    """A stack of frames, the deepest first, of (file, line, function)."""
    frame = None
    for file, line, function in reversed(lines):
        code = Code(file, function, 1)
        frame = SimpleNamespace(f_code=code, f_lineno=line, f_back=frame)
    return frame


def test_machinery_is_looked_through_and_the_profiler_is_not_there():
    clock = own_module.__file__
    assert is_own(clock)
    stack = planted(
        (torch.__file__, 10, "matmul"), (clock, 5, "finding"), ("/x/site-packages/sb3/dqn.py", 7, "train"),
        (torch.__file__, 3, "no_grad"), ("/x/train.py", 2, "main"),
    )  # fmt: skip
    sampler = Sampler(lambda: "forward")
    sampler.look(stack, "forward")
    sampler.look(planted((torch.__file__, 1, "boot")), "other")  # nobody's
    found = {line.place.function: (line.own, line.total, line.place.whose) for line in sampler.lines()}
    assert found == {"train": (0.5, 0.5, "library"), "main": (0.0, 0.5, "yours")}


def test_a_line_has_the_phase_of_most_of_its_samples():
    sampler, line = Sampler(lambda: ""), ("/x/train.py", 4, "work")
    for phase in ("forward", "forward", "env"):
        sampler.look(planted(line), phase)
    assert [found.phase for found in sampler.lines()] == ["forward"]
    for _ in range(2):
        sampler.look(planted(line), "env")
    assert [(found.phase, found.own) for found in sampler.lines()] == [("env", 1.0)]
    assert sampler.phases == {"forward": 2, "env": 3}


def test_samples_count_for_the_share_of_their_phase_on_the_clock():
    sampler = Sampler(lambda: "")
    for line, phase in ((1, "env"), (1, "env"), (2, "env"), (3, "sample"), (4, "python")):
        sampler.look(planted(("/x/train.py", line, "main")), phase)
    # Three samples of env for 0.3; two of what lies between calls for 0.4 + 0.2 + 0.1 by the clock's names.
    shares = {"env": 0.3, "sample": 0.4, "store": 0.2, "other": 0.1}
    found = {line.place.line: line.own for line in sampler.lines(shares)}
    assert found == pytest.approx({1: 0.2, 2: 0.1, 3: 0.35, 4: 0.35})
    assert [line.place.line for line in sampler.lines(shares, limit=2)] == [3, 4]


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
    here = test_a_hot_function_is_found_and_the_interpreter_left_as_it_was.__name__
    own = sum(line.own for line in sampler.lines() if line.place.function == "busy")
    total = max(line.total for line in sampler.lines() if line.place.function == here)  # the line that calls it
    assert sampler.count > 5 and own > 0.5 and total > 0.5
    assert sampler.cost_s > 0


@pytest.mark.parametrize("first", [0, 1])
def test_samplers_side_by_side_leave_the_interpreter_as_it_was(first):
    before = sys.getswitchinterval()
    samplers = Sampler(lambda: "env"), Sampler(lambda: "env")
    for sampler in samplers:
        sampler.start()
    lowered = sys.getswitchinterval()
    samplers[first].stop()
    assert lowered < before and sys.getswitchinterval() == lowered  # the other one still runs
    samplers[1 - first].stop()
    assert sys.getswitchinterval() == before


def test_what_the_reader_sets_meanwhile_stays():
    before, sampler = sys.getswitchinterval(), Sampler(lambda: "env")
    sampler.start()
    sys.setswitchinterval(0.02)
    sampler.stop()
    try:
        assert sys.getswitchinterval() == 0.02
    finally:
        sys.setswitchinterval(before)


def test_a_thread_that_cannot_start_leaves_nothing_behind(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    before, sampler = sys.getswitchinterval(), Sampler(lambda: "env", interval_s=0.002)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            sampler.start()
    sampler.stop()
    assert sys.getswitchinterval() == before
    sampler.start()  # and it can be tried again
    busy(0.1)
    sampler.stop()
    assert sampler.count and sys.getswitchinterval() == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_the_sampler_does_not_reach_the_run():
    before, sampler = sys.getswitchinterval(), Sampler(lambda: 1 / 0, interval_s=0.001)
    sampler.start()
    busy(0.05)
    sampler.stop()
    assert sampler.count == 0 and sys.getswitchinterval() == before


def test_phases_that_change_meanwhile():
    where = ["forward"]
    sampler = Sampler(lambda: where[0], interval_s=0.002)
    sampler.start()
    busy(0.1)
    where[0] = "env"
    busy(0.1)
    where[0] = ""
    sampler.stop()
    assert set(sampler.phases) == {"forward", "env"} and sampler.phases.total() == sampler.count


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
