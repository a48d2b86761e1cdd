import math

import pytest

from rlbench import DQNConfig
from rlbench.speedups import Choices
from rlbench.tuning.contender import Candidate
from rlbench.tuning.race import FIRST_ROUNDS, Race, Standing


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Fake:
    """A contender whose blocks take what they are asked for and bring what is planted."""

    def __init__(self, clock, *rates, fails=False):
        self.candidate = Candidate(Choices.plain(), 1, DQNConfig(), {"rate": rates})
        self.clock, self.rates, self.fails, self.blocks = clock, list(rates), fails, 0
        self.trainer, self.first_s, self.compile_s = object(), 0.5, 0.0

    def block(self, seconds):
        if self.fails:
            raise RuntimeError("planted")
        self.clock.now += seconds
        rate = self.rates[self.blocks % len(self.rates)]
        self.blocks += 1
        return round(rate * seconds), 10, seconds


def race(clock, base, *others, **more):
    return Race(base, others, block_s=1.0, clock=clock, **more)


def test_ratios_are_taken_within_rounds():
    clock = Clock()
    base, twice, half = Fake(clock, 100), Fake(clock, 200), Fake(clock, 50)
    found = race(clock, base, twice, half).run(math.inf, rounds=6, drop=False)
    assert [s.ratio for s in found] == [1.0, 2.0, 0.5]
    assert [s.verdict for s in found] == ["no difference seen", "faster", "slower"]
    assert {s.rounds for s in found} == {6} and base.blocks == 12, "the baseline runs twice a round"


def test_the_clearly_slower_is_dropped_and_stays_in_the_standings():
    clock = Clock()
    slow, near = Fake(clock, 50), Fake(clock, 100, 101, 99)
    found = race(clock, Fake(clock, 100), slow, near).run(math.inf, rounds=8)
    by_rate = {s.candidate.changed["rate"][0]: s for s in found}
    assert slow.blocks == FIRST_ROUNDS and by_rate[50].dropped and not by_rate[100].dropped
    assert by_rate[50].ratio == 0.5


def test_who_raises_is_out_and_named():
    clock = Clock()
    found = race(clock, Fake(clock, 100), Fake(clock, 1, fails=True)).run(math.inf, rounds=3)
    assert found[-1].why_not == "RuntimeError: planted" and found[-1].verdict == "not measured"
    with pytest.raises(RuntimeError, match="planted"):
        race(clock, Fake(clock, 1, fails=True), Fake(clock, 1)).run(math.inf, rounds=1)


def test_a_round_that_is_cut_short_is_not_kept():
    clock = Clock()
    base, other = Fake(clock, 100), Fake(clock, 100)
    found = race(clock, base, other).run(10.5, rounds=50)
    assert found[1].rounds == 3, "rounds of three seconds: the fourth would end at twelve"
    assert clock.now <= 11.5


def test_noise_alone_is_no_difference():
    clock = Clock()
    noisy = Fake(clock, 95, 105, 100, 98, 102)
    found = race(clock, Fake(clock, 100, 104, 96), noisy).run(math.inf, rounds=10, drop=False)
    assert found[1].verdict == "no difference seen"


def test_what_counts_may_be_something_else():
    clock = Clock()
    base, other = Fake(clock, 100), Fake(clock, 10)
    found = race(clock, base, other, rate=lambda c, steps, updates, s: updates / s).run(math.inf, rounds=3, drop=False)
    assert found[1].ratio == 1.0


def test_before_any_round():
    standing = Standing(Candidate(Choices.plain(), 1, None, {}), math.nan, math.nan, math.nan, math.nan, 1, 1, 0, 0, 0)
    assert standing.verdict == "too few rounds" and standing.candidate.label == "as it is"


def test_the_grossly_slower_leave_early_and_at_once_where_their_blocks_last_long():
    clock = Clock()
    gross = Fake(clock, 10)
    race(clock, Fake(clock, 100), gross, Fake(clock, 101)).run(math.inf, rounds=8)
    assert gross.blocks == 2
    long, honest = Fake(clock, 10), Fake.block
    long.block = lambda seconds: (honest(long, 5 * seconds)[0], 10, 5 * seconds)
    race(clock, Fake(clock, 100), long, Fake(clock, 101)).run(math.inf, rounds=8)
    assert long.blocks == 1


def test_nobody_leaves_for_a_difference_that_the_baseline_shows_against_itself():
    clock = Clock()
    noisy, slower = Fake(clock, 100, 60, 60, 100), Fake(clock, 75)
    found = race(clock, noisy, slower).run(math.inf, rounds=4)
    assert not found[1].dropped and found[1].aa_low < 0.7 < 1.4 < found[1].aa_high


def test_a_clear_winner_ends_the_race():
    clock = Clock()
    found = race(clock, Fake(clock, 100), Fake(clock, 150)).run(math.inf, rounds=12)
    assert found[1].rounds == 5 and found[1].verdict == "faster"


def test_a_race_that_is_stopped_keeps_whole_rounds():
    clock, blocks = Clock(), []
    stopped = race(
        clock,
        Fake(clock, 100),
        Fake(clock, 150),
        should_stop=lambda: len(blocks) >= 8,
        on_block=lambda: blocks.append(1),
    )
    assert stopped.run(math.inf)[1].rounds == 2, "eight blocks: two rounds of three, and two more"


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ((1.5, 1.2, 1.8, 0.7, 1.4), "faster"),
        ((1.5, 0.9, 1.8, 0.9, 1.1), "no difference seen"),  # the interval has 1
        ((1.3, 1.2, 1.4, 0.7, 1.4), "no difference seen"),  # inside the band
        ((0.6, 0.5, 0.7, 0.8, 1.25), "slower"),
        ((0.9, 0.8, 0.95, 0.8, 1.25), "no difference seen"),
    ],
)
def test_verdicts_are_those_of_paired_timing(numbers, verdict):
    assert Standing(Candidate(Choices.plain(), 1, None, {}), 1.0, *numbers, 5, 0, 0).verdict == verdict
