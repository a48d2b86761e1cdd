import threading

import pytest
import torch

from rlbench import phases
from rlbench.phases import PhaseClock, phase


class Clock:
    """A clock that stands still until told to move; nanoseconds."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def seconds(self, amount):
        self.now += int(amount * 1e9)


@pytest.fixture
def clock():
    return Clock()


def test_times_are_exclusive_and_add_up(clock):
    with PhaseClock(now=clock) as phased:
        clock.seconds(1)
        with phase("update"):
            clock.seconds(2)
            with phase("forward"):
                clock.seconds(3)
                with phase("transfer"):
                    clock.seconds(4)
            clock.seconds(5)
            with phase("forward"):
                clock.seconds(6)
        clock.seconds(7)
    assert phased.seconds == {"update": 7.0, "forward": 9.0, "transfer": 4.0, "other": 8.0}
    assert list(phased.seconds)[-1] == "other"
    assert phased.calls == {"update": 1, "forward": 2, "transfer": 1}
    assert phased.total == 28.0
    assert phased.shares == {"update": 0.25, "forward": 9 / 28, "transfer": 1 / 7, "other": 8 / 28}


def test_a_phase_within_itself_is_counted_once(clock):
    with PhaseClock(now=clock) as phased, phase("env"):
        clock.seconds(1)
        with phase("env"):
            clock.seconds(2)
        clock.seconds(4)
    assert phased.seconds == {"env": 7.0, "other": 0.0}
    assert phased.calls == {"env": 2}


def test_an_exception_closes_phases_and_clock(clock):
    phased = PhaseClock(now=clock)
    with pytest.raises(KeyError), phased, phase("outer"):
        clock.seconds(1)
        with pytest.raises(ZeroDivisionError), phase("inner"):
            clock.seconds(2)
            raise ZeroDivisionError
        clock.seconds(4)
        raise KeyError
    assert phased.seconds == {"outer": 5.0, "inner": 2.0, "other": 0.0}
    assert phase("outer") is phase("inner"), "no clock is open any more"


def test_without_a_clock_nothing_is_allocated_or_counted():
    assert phase("a") is phase("b")
    with phase("a") as got:
        pass
    assert got is None


def test_a_clock_entered_again_goes_on_adding(clock):
    phased = PhaseClock(now=clock)
    for amount in (1, 2):
        with phased, phase("env"):
            clock.seconds(amount)
        clock.seconds(100)  # closed: not counted
    assert phased.seconds == {"env": 3.0, "other": 0.0}


def test_only_the_thread_that_opened_the_clock_counts(clock):
    def worker():
        with phase("worker"):
            clock.seconds(1)

    with PhaseClock(now=clock) as phased, phase("main"):
        thread = threading.Thread(target=worker)
        thread.start()
        thread.join()
    assert phased.seconds == {"main": 1.0, "other": 0.0}


def test_two_threads_have_a_clock_each(clock):
    found = {}

    def worker():
        with PhaseClock(now=clock) as own, phase("worker"):
            clock.seconds(1)
        found.update(own.seconds)

    with PhaseClock(now=clock) as phased:
        thread = threading.Thread(target=worker)
        thread.start()
        thread.join()
    assert found == {"worker": 1.0, "other": 0.0}
    assert phased.seconds == {"other": 1.0}


def test_a_phase_left_after_its_clock_is_harmless(clock):
    def generator():
        with phase("generator"):
            yield

    with PhaseClock(now=clock) as phased:
        left_open = generator()
        next(left_open)
        clock.seconds(1)
    clock.seconds(9)
    left_open.close()
    assert phased.seconds == {"generator": 1.0, "other": 0.0}


def test_misuse_is_refused(clock):
    with PhaseClock(now=clock) as open_already:
        with pytest.raises(RuntimeError, match="open already"), open_already:
            pass
        with pytest.raises(ValueError, match="reserved"), phase("other"):
            pass
        with phase("still works"):
            pass
    with pytest.raises(ValueError, match="mps"), PhaseClock("mps"):
        pass
    assert phase("a") is phase("b"), "the clock that could not open is not left behind"


def test_a_clock_that_saw_no_time_has_shares_of_zero(clock):
    with PhaseClock(now=clock) as phased:
        pass
    assert phased.shares == {"other": 0.0}


def test_shares_of_real_work_add_up_to_the_wall_time():
    with PhaseClock() as phased:
        for _ in range(50):
            with phase("matmul"):
                torch.ones(30, 30) @ torch.ones(30, 30)
    assert sum(phased.shares.values()) == pytest.approx(1.0)
    assert sum(phased.seconds.values()) == pytest.approx(phased.total)
    assert phased.seconds["matmul"] > 0


def test_cuda_is_synchronised_at_every_border(clock, monkeypatch):
    waits = []
    monkeypatch.setattr(phases, "synchronize", lambda device: waits.append(str(device)))
    with PhaseClock("cuda:0", now=clock), phase("a"), phase("b"):
        pass
    assert waits == ["cuda:0"] * 6  # open, a, b, end of b, end of a, close


def test_clocks_nest(clock):
    with PhaseClock(now=clock) as outer, phase("whole"):
        clock.seconds(1)
        with PhaseClock(now=clock) as inner:
            clock.seconds(2)
            with phase("part"):
                clock.seconds(4)
        clock.seconds(8)
    assert inner.seconds == {"part": 4.0, "other": 2.0}
    assert outer.seconds == {"whole": 11.0, "part": 4.0, "other": 0.0}


def test_a_phase_left_after_the_inner_clock_ends_in_the_outer_one(clock):
    def generator():
        with phase("generator"):
            yield

    with PhaseClock(now=clock) as outer:
        with PhaseClock(now=clock):
            left_open = generator()
            next(left_open)
            clock.seconds(1)
        clock.seconds(2)
        left_open.close()
        clock.seconds(4)
    assert outer.seconds == {"generator": 3.0, "other": 4.0}
