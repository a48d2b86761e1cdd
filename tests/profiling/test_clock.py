import pytest
import torch

from rlbench.phases import PhaseClock, phase
from rlbench.profiling.clock import RecordingClock
from rlbench.profiling.found import found


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


def recording(clock):
    return RecordingClock(now=clock, cpu=lambda: clock.now // 2)


def call(recorder, clock, name, seconds, grad=True, step=True):
    with torch.set_grad_enabled(grad), recorder.finding(name if step else "reset"):
        clock.seconds(seconds)


def dqn_iteration(recorder, clock, learn=True):
    """0.5 s of storing and sampling, then a forward pass of target and online network, and so on."""
    call(recorder, clock, "forward", 1, grad=False)  # the action
    clock.seconds(0.25)  # argmax
    call(recorder, clock, "env", 2)
    clock.seconds(0.5)
    if learn:
        call(recorder, clock, "forward", 3, grad=False)  # the target network
        call(recorder, clock, "forward", 4)
        clock.seconds(0.125)  # the loss
        call(recorder, clock, "backward", 8)
        clock.seconds(0.0625)  # clipping
        call(recorder, clock, "optimizer", 16)
        clock.seconds(32)  # logging


def test_gaps_of_a_dqn_are_named_by_their_neighbours(clock):
    with recording(clock) as recorder:
        call(recorder, clock, "env", 1, step=False)  # reset
        for _ in range(3):
            dqn_iteration(recorder, clock)
        call(recorder, clock, "env", 0)
    spent = recorder.totals.seconds({"store": 1, "sample": 3, "": 9})
    assert spent == {
        "env": 1 + 3 * 2.0,
        "action": 3 * 1.25,
        "forward": 3 * 7.125,
        "backward": 3 * 8.0,
        "optimizer": 3 * 16.0625,
        "python": 3 * 32.0,
        "store": pytest.approx(3 * 0.125),
        "sample": pytest.approx(3 * 0.375),
        "other": 0.0,
    }
    assert sum(spent.values()) == pytest.approx(clock.now / 1e9)
    assert (recorder.totals.steps, recorder.totals.updates, recorder.totals.episodes) == (4, 3, 1)
    assert recorder.totals.counts == {"env": 5, "action": 3, "forward": 6, "backward": 3, "optimizer": 3}


def test_without_updates_what_follows_a_step_is_storing(clock):
    with recording(clock) as recorder:
        for _ in range(2):
            dqn_iteration(recorder, clock, learn=False)
        call(recorder, clock, "env", 0)
    assert recorder.totals.seconds({}) == {"env": 4.0, "action": 1.25 + 1.25, "store": 1.0, "other": 0.0}


def test_what_comes_before_the_first_certain_call_and_after_the_last_is_neither(clock):
    with recording(clock) as recorder:
        clock.seconds(4)
        call(recorder, clock, "env", 1)
        clock.seconds(2)
    assert recorder.totals.seconds({}) == {"set-up": 4.0, "env": 1.0, "other": 2.0}


def test_epochs_over_a_rollout_sample_between_updates(clock):
    with recording(clock) as recorder:
        call(recorder, clock, "env", 1)
        for _ in range(2):
            clock.seconds(1)
            call(recorder, clock, "forward", 2)
            call(recorder, clock, "backward", 4)
            call(recorder, clock, "optimizer", 8)
    found = recorder.totals.seconds({"store": 1, "sample": 1})
    assert found == {
        "env": 1.0,
        "store": 0.5,
        "sample": 1.5,
        "forward": 4.0,
        "backward": 8.0,
        "optimizer": 16.0,
        "other": 0.0,
    }


def test_phases_that_the_code_names_win(clock):
    with recording(clock) as recorder, phase("python"):
        with phase("action"):
            call(recorder, clock, "forward", 1)
        with phase("env"):
            call(recorder, clock, "env", 2)
        clock.seconds(4)
    assert recorder.totals.seconds({}) == {"python": 4.0, "action": 1.0, "env": 2.0, "other": 0.0}
    assert recorder.totals.steps == 1


def test_a_pause_counts_nothing_but_keeps_what_is_open(clock):
    with recording(clock) as recorder:
        with recorder.finding("env"):
            clock.seconds(1)
            recorder.pause()
            clock.seconds(10)
        dqn_iteration(recorder, clock)
        recorder.resume()
        clock.seconds(2)
        call(recorder, clock, "env", 4)
    assert sum(recorder.totals.seconds({}).values()) == 7.0
    assert (recorder.totals.steps, recorder.totals.updates) == (2, 0)
    assert recorder.borders == {"env": 3, "optimizer": 1}


def test_a_border_is_told_and_its_time_is_not_counted(clock):
    reached = []

    def border():
        clock.seconds(100)
        reached.append(recorder.border_of)

    with PhaseClock(now=clock) as plain, recording(clock) as around, recording(clock) as recorder:
        recorder.on_border = border
        dqn_iteration(recorder, clock)
        call(recorder, clock, "env", 1, step=False)
    assert reached == ["env", "optimizer"]
    whole = 1 + 0.25 + 2 + 0.5 + 3 + 4 + 0.125 + 8 + 0.0625 + 16 + 32 + 1
    assert sum(recorder.totals.seconds({}).values()) == pytest.approx(whole)
    assert sum(around.totals.seconds({}).values()) == pytest.approx(whole)
    assert plain.total == pytest.approx(whole + 200)


def test_the_processor_time_of_the_env_is_kept(clock):
    with recording(clock) as recorder:
        call(recorder, clock, "env", 3)
    assert recorder.totals.env_cpu_s == 1.5


def test_a_call_within_a_call_counts_for_the_outer(clock):
    with recording(clock) as recorder, recorder.finding("env"):
        call(recorder, clock, "env", 1)
        call(recorder, clock, "forward", 2)
    assert recorder.totals.seconds({}) == {"env": 3.0, "other": 0.0}
    assert recorder.totals.steps == 1


def test_the_phase_of_a_loop_is_known_from_its_second_turn_on(clock):
    seen = []

    def iteration():
        with recorder.finding("forward"):
            seen.append(recorder.phase)
        call(recorder, clock, "env", 1)
        seen.append(recorder.phase)
        call(recorder, clock, "forward", 1)
        seen.append(recorder.phase)
        call(recorder, clock, "backward", 1)
        seen.append(recorder.phase)
        call(recorder, clock, "optimizer", 1)

    with recording(clock) as recorder, torch.enable_grad():
        for _ in range(3):
            iteration()
    assert seen[8:] == ["action", "gap", "forward", "optimizer"]


def test_what_was_not_looked_at_is_split_like_what_was(clock):
    def turn():
        with phase("env"):
            clock.seconds(1)
        with phase("sample"):
            clock.seconds(2)
        with phase("forward"):
            clock.seconds(6)
        with phase("optimizer"):
            clock.seconds(3)
        clock.seconds(2)

    with recording(clock) as recorder, phase("python"):
        turn()
        recorder.look_away()
        assert recorder.phase == ""
        turn()
        with recorder.finding("reset"):
            clock.seconds(100)
            assert recorder.phase == "env"
        turn()
        recorder.look()
    found = recorder.totals.seconds({})
    assert found == {
        "python": 6.0, "env": 103.0, "sample": 6.0, "forward": 18.0, "optimizer": 9.0, "other": 0.0,
    }  # fmt: skip
    assert (recorder.totals.steps, recorder.totals.updates) == (3, 3)


def test_looking_away_from_gaps_between_calls_that_are_found(clock):
    with recording(clock) as recorder:
        call(recorder, clock, "env", 1, step=False)
        for i in range(4):
            if i == 2:
                recorder.look_away()
            dqn_iteration(recorder, clock)
        recorder.look()
        call(recorder, clock, "env", 0)
    found = recorder.totals.seconds({"sample": 1})
    assert sum(found.values()) == pytest.approx(clock.now / 1e9)
    assert found["env"] == 9.0 and found["optimizer"] >= 4 * 16
    assert found["forward"] / found["action"] == pytest.approx(7.125 / 1.25)


def test_named_phases_in_clocks_of_both_kinds(clock):
    with recording(clock) as outermost, PhaseClock(now=clock) as plain, recording(clock) as inner:
        with phase("store"):
            clock.seconds(2)
        with phase("env"):
            clock.seconds(1)
    assert inner.totals.seconds({}) == {"store": 2.0, "env": 1.0, "other": 0.0}
    assert plain.seconds == {"store": 2.0, "env": 1.0, "other": 0.0}
    assert outermost.totals.seconds({}) == {"store": 2.0, "env": 1.0, "other": 0.0}
    assert outermost.totals.steps == inner.totals.steps == 1


def test_a_rare_pause_is_not_multiplied_by_what_was_not_seen(clock):
    def turn(pause=0.0):
        call(recorder, clock, "forward", 0.001, grad=False)
        call(recorder, clock, "env", 0.001)
        call(recorder, clock, "forward", 0.002)
        call(recorder, clock, "backward", 0.002)
        call(recorder, clock, "optimizer", 0.001)
        clock.seconds(0.001 + pause)

    with recording(clock) as recorder:
        for i in range(100):
            if i == 10:
                recorder.look_away()
            turn(pause=0.5 if i in (4, 60) else 0.0)
        recorder.look()
        call(recorder, clock, "env", 0)
    found = recorder.totals.seconds({})
    assert sum(found.values()) == pytest.approx(clock.now / 1e9)
    assert found["python"] == pytest.approx(1.0 + 100 * 0.001, rel=0.02), "two pauses; one of them was seen"
    assert found["backward"] == pytest.approx(100 * 0.002, rel=0.15)


def test_calls_within_calls_while_the_clock_looks_away(clock):
    with recording(clock) as recorder, phase("python"):
        recorder.look_away()
        with phase("env"):
            clock.seconds(1)
            with phase("env"):  # a step within a step
                clock.seconds(2)
            with phase("mine"):  # named by the reader
                clock.seconds(4)
            with pytest.raises(KeyError), phase("transfer"):
                raise KeyError
        with pytest.raises(ZeroDivisionError), phase("update"):
            clock.seconds(8)
            raise ZeroDivisionError
        clock.seconds(16)
        recorder.look()
        with phase("env"):
            clock.seconds(32)
    found = recorder.totals.seconds({})
    assert found == {
        "python": 0.0,
        "env": 35.0,
        "mine": 4.0,
        "update": 8.0,
        "other": 16.0,
    }  # it saw nothing else to share
    assert (recorder.totals.steps, recorder.totals.updates) == (2, 1)
    assert recorder.totals.counts == {"python": 1, "env": 2, "mine": 1, "update": 1}
    assert recorder.borders == {"env": 2, "optimizer": 1}


def test_calls_that_are_found_while_the_clock_looks_away(clock):
    def step(seconds, inside=lambda: None):
        clock.seconds(seconds)
        inside()
        return seconds

    def fails():
        raise ZeroDivisionError

    env, reset, optimizer = (found(step, name) for name in ("env", "reset", "optimizer"))
    reached = []
    with recording(clock) as recorder:
        recorder.look_away()
        recorder.on_border, recorder.wake = lambda: reached.append(clock.now / 1e9), 7.5e9
        assert env(1) == 1
        clock.seconds(0.5)
        assert env(2, inside=lambda: env(4)) == 2  # a step within a step: one step
        clock.seconds(0.25)
        assert reset(8) == 8  # no step
        with pytest.raises(ZeroDivisionError):
            optimizer(16, inside=fails)
        with phase("python"):
            optimizer(32)
            clock.seconds(64)
        recorder.look()
        env(128)
    spent = recorder.totals.seconds({})
    assert spent == {"env": 1 + 6 + 8 + 128.0, "optimizer": 48.0, "python": 0.0, "other": 64.75}
    totals = recorder.totals
    assert (totals.steps, totals.updates, totals.episodes) == (3, 2, 1)
    assert totals.counts == {"env": 4, "optimizer": 2, "python": 1}
    assert recorder.borders == {"env": 3, "optimizer": 2} and recorder.border_of == "env"
    assert reached == [7.5, 31.75, 63.75, 255.75]  # a step is over, and it is late enough


def test_a_clock_closed_inside_a_call_while_it_looks_away(clock):
    recorder = recording(clock)
    recorder.__enter__()
    recorder.look_away()
    found(lambda: recorder.__exit__(None, None, None), "env")()
    assert recorder.totals.steps == 0 and not recorder.stack


def test_it_looks_again_in_the_middle_of_a_step(clock):
    with recording(clock) as recorder:
        dqn_iteration(recorder, clock)
        recorder.look_away()
        with recorder.finding("env"):
            clock.seconds(1)
            recorder.look()
            clock.seconds(1)
        clock.seconds(0.5)
        call(recorder, clock, "forward", 1, grad=False)
        call(recorder, clock, "env", 0)
    found = recorder.totals.seconds({"sample": 1})
    assert sum(found.values()) == pytest.approx(clock.now / 1e9)
    assert found["env"] == 4.0 and recorder.totals.steps == 3


def test_a_step_that_was_begun_before_the_clock_looked_away(clock):
    with recording(clock) as recorder:
        dqn_iteration(recorder, clock)
        with recorder.finding("env"):
            clock.seconds(1)
            recorder.look_away()
            clock.seconds(1)
        dqn_iteration(recorder, clock)
        recorder.look()
    found = recorder.totals.seconds({"sample": 1})
    assert sum(found.values()) == pytest.approx(clock.now / 1e9)
    assert found["env"] == 6.0 and found["optimizer"] >= 32 and recorder.totals.steps == 3


def test_a_plain_clock_within_two_others_tells_both(clock):
    with recording(clock) as outermost, recording(clock) as around, PhaseClock(now=clock), phase("store"):
        clock.seconds(2)
    for recorder in (outermost, around):
        assert recorder.totals.seconds({}) == {"store": 2.0, "other": 0.0}
