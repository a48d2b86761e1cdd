"""The method itself: how often does it see a difference that is not there, or miss one that is?"""

import numpy as np
import pytest

from rlbench import timing
from rlbench.timing import compare, time_paired


def noisy_rounds(seed, rounds, speeds):
    """Times of callables on a bad machine, in random order within rounds. # (rounds, callables)

    A random walk and a slow wave (clock speed, temperature), heavy-tailed jitter that only ever slows down (Student's
    t with 1.5 degrees of freedom has no variance), and one timing in twenty hit by a long interruption.
    """
    rng = np.random.default_rng(seed)
    count = len(speeds)
    steps = rounds * count
    drift = 0.01 * rng.standard_normal(steps).cumsum() + 0.3 * np.sin(np.arange(steps) / 25 + rng.uniform(0, 6))
    jitter = np.abs(0.02 * rng.standard_t(1.5, steps))
    spikes = (rng.random(steps) < 0.05) * rng.exponential(1.5, steps)
    in_time = np.exp(drift + jitter + spikes).reshape(rounds, count)
    by_name = np.empty_like(in_time)
    for row in range(rounds):
        by_name[row, rng.permutation(count)] = in_time[row]
    return by_name * np.array(speeds)


def verdicts(rounds, speed, pairs=100):
    found = []
    for seed in range(pairs):
        base, variant, again = noisy_rounds(seed, rounds, [1.0, speed, 1.0]).T
        found.append(compare(base, variant, again).verdict)
    return found


@pytest.mark.parametrize("rounds", [5, 7, 20])
def test_of_100_pairs_of_the_same_code_at_most_8_read_as_different(rounds):
    assert 100 - verdicts(rounds, 1.0).count("no difference seen") <= 8


class Clock:
    """A simulated clock, in nanoseconds."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


def test_the_noise_fools_what_is_not_paired():
    wrong = 0
    for seed in range(100):
        timed = noisy_rounds(seed, 20, [1.0]).ravel()  # ten timings of one side, then ten of the same code again
        first = timing.bootstrap_interval(np.log(timed[:10]), np.median)
        second = timing.bootstrap_interval(np.log(timed[10:]), np.median)
        wrong += first[1] < second[0] or second[1] < first[0]
    assert wrong > 20


@pytest.mark.parametrize("speed, verdict, at_least", [(1.0, "no difference seen", 92), (1.1, "slower", 90)])
def test_the_whole_method_on_a_simulated_noisy_machine(speed, verdict, at_least):
    found = []
    for seed in range(100):
        machine = Clock()
        rng = np.random.default_rng(seed)

        def takes(seconds, machine=machine, rng=rng):
            slowdown = 1 + 0.3 * np.sin(machine.now / 3e9) + abs(0.02 * rng.standard_t(1.5))
            machine.now += round(1e9 * seconds * slowdown)

        def variant(takes=takes):
            takes(0.1 * speed)

        paired = time_paired(lambda takes=takes: takes(0.1), {"v": variant}, min_round_s=0.05, seed=seed, clock=machine)
        found.append(paired.ratio("v").verdict)
    assert found.count(verdict) >= at_least


def test_a_real_tenth_is_seen_under_the_same_noise():
    assert verdicts(20, 1 / 1.1).count("faster") >= 90
    assert verdicts(20, 1.1).count("slower") >= 90
