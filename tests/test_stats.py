import math
from functools import partial

import numpy as np
import pytest

from rlbench import stats


def test_interquartile_mean_by_hand():
    assert stats.interquartile_mean([100, 1, 2, 3, 4, 5, 6, -50]) == (2 + 3 + 4 + 5) / 4
    assert stats.interquartile_mean([1, 2, 3, 4, 100]) == 3  # one dropped at each end
    assert stats.interquartile_mean([7]) == 7
    assert stats.interquartile_mean([1, 2, 9]) == 4  # too few to drop any
    with pytest.raises(ValueError, match="no values"):
        stats.interquartile_mean([])


def test_interquartile_mean_along_each_axis():
    values = np.array([[0.0, 10.0], [1.0, 20.0], [3.0, 30.0], [99.0, -5.0]])
    assert stats.interquartile_mean(values, axis=0).tolist() == [2.0, 15.0]
    assert stats.interquartile_mean(values, axis=1).tolist() == [5.0, 10.5, 16.5, 47.0]


def test_interval_of_the_mean_agrees_with_the_normal_one():
    values = np.random.default_rng(1).normal(3, 2, 400)
    low, high = stats.bootstrap_interval(values, np.mean)
    half = 1.96 * values.std(ddof=1) / math.sqrt(400)
    assert low == pytest.approx(values.mean() - half, abs=0.02)
    assert high == pytest.approx(values.mean() + half, abs=0.02)


def test_interval_is_the_same_for_the_same_seed_and_touches_no_global_state():
    values = np.arange(10.0)
    state = np.random.get_state()[1].copy()
    first = stats.bootstrap_interval(values, np.median, seed=5)
    assert first == stats.bootstrap_interval(values, np.median, seed=5)
    assert first != stats.bootstrap_interval(values**2, np.median, seed=5)
    assert (np.random.get_state()[1] == state).all()


def test_interval_of_constants_and_of_one_value_is_a_point():
    assert stats.bootstrap_interval(np.full(7, 2.5)) == (2.5, 2.5)
    assert stats.bootstrap_interval([4.0], np.median) == (4.0, 4.0)
    assert stats.block_bootstrap([4.0]) == (4.0, 4.0)


def test_two_values_by_hand():
    # The mean of two draws from {0, 1} is 0, 1/2, 1 with chances 1/4, 1/2, 1/4: the 40 % interval is a point.
    assert stats.bootstrap_interval([0, 1], level=0.4) == (0.5, 0.5)
    assert stats.bootstrap_interval([0, 1], level=0.6) == (0.0, 1.0)


@pytest.mark.parametrize("bad", [[], [[1.0, 2.0]], [1.0, math.nan], [math.inf]])
def test_what_cannot_be_resampled_is_refused(bad):
    for bootstrap in (stats.bootstrap_interval, stats.block_bootstrap):
        with pytest.raises(ValueError, match=r"shape|value"):
            bootstrap(bad)


def test_level_and_block_out_of_range_are_refused():
    with pytest.raises(ValueError, match="level=95"):
        stats.bootstrap_interval([1, 2], level=95)
    with pytest.raises(ValueError, match=r"mean_block=0.5"):
        stats.block_bootstrap([1, 2], mean_block=0.5)


def test_strata_are_resampled_within_themselves():
    seen = []

    def difference(groups):
        seen.extend(groups)
        return groups[1].mean(axis=1) - groups[0].mean(axis=1)

    low, high = stats.stratified_bootstrap([np.array([1.0, 1.0, 1.0]), np.array([5.0, 5.0])], difference, resamples=50)
    assert (low, high) == (4.0, 4.0)
    assert [group.shape for group in seen] == [(50, 3), (50, 2)]


def test_stationary_indices_run_on_and_wrap():
    whole = stats.stationary_indices(np.random.default_rng(0), 20, 6, mean_block=1e12)
    for row in whole:  # no block ever ends: each row is a rotation of the series
        assert row.tolist() == [(row[0] + i) % 6 for i in range(6)]
    assert set(whole[:, 0]) == set(range(6))
    drawn = stats.stationary_indices(np.random.default_rng(0), 200, 500, mean_block=10.0)
    breaks = (np.diff(drawn, axis=1) % 500 != 1).mean()
    assert breaks == pytest.approx(0.1, abs=0.005)
    assert np.bincount(drawn.ravel(), minlength=500).min() > 0


def test_block_bootstrap_widens_the_interval_of_a_series_with_memory():
    rng = np.random.default_rng(3)
    series = np.zeros(4000)
    for t in range(1, 4000):  # AR(1) with 0.8: the mean's variance is 9 times that of independent draws
        series[t] = 0.8 * series[t - 1] + rng.standard_normal()
    naive = np.subtract(*stats.bootstrap_interval(series)[::-1])
    blocks = np.subtract(*stats.block_bootstrap(series, mean_block=60, resamples=1000)[::-1])
    assert 2.2 < blocks / naive < 3.8


def test_block_bootstrap_in_parts_covers_all_resamples(monkeypatch):
    sizes = []

    def mean(values, axis):
        sizes.append(values.shape)
        return values.mean(axis=axis)

    stats.block_bootstrap(np.arange(300_000.0), mean, resamples=20)
    assert sum(rows for rows, _ in sizes) == 20
    assert max(rows * bars for rows, bars in sizes) <= 2_000_000


def test_sharpe_by_hand():
    # mean 0.01, deviations -0.02, 0, 0.02: spread 0.02; a yearly factor of sqrt(4)
    assert stats.sharpe_ratio([-0.01, 0.01, 0.03], bars_per_year=4) == pytest.approx(1.0)
    assert math.isnan(stats.sharpe_ratio([0.1, 0.1, 0.1], 252))
    both = stats.sharpe_ratio(np.array([[-0.01, 0.01, 0.03], [0.2, 0.2, 0.2]]), 4)
    assert both[0] == pytest.approx(1.0) and math.isnan(both[1])
    with pytest.raises(ValueError, match="at least two"):
        stats.sharpe_ratio([0.1], 252)


def test_sharpe_interval_contains_the_sample():
    returns = np.random.default_rng(0).normal(0.001, 0.01, 1000)
    low, high = stats.block_bootstrap(returns, partial(stats.sharpe_ratio, bars_per_year=252))
    assert low < stats.sharpe_ratio(returns, 252) < high


PLAIN = [480, 490, 500, 470, 495, 485, 500, 490, 475, 500]


def test_the_same_returns_learn_the_same():
    found = stats.non_inferior(PLAIN, PLAIN, random_return=20)
    # sorted: 470 475 | 480 485 490 490 495 500 | 500 500
    assert found.plain == pytest.approx(490)
    assert (found.difference, found.bound) == (0, pytest.approx(0.05 * 470))
    assert found.non_inferior and found.equivalent
    assert found.verdict == "learns the same"


def test_worse_better_and_undecided():
    worse = stats.non_inferior(PLAIN, [r - 100 for r in PLAIN], random_return=20)
    assert not worse.non_inferior and worse.verdict == "learns less"
    better = stats.non_inferior(PLAIN, [r + 100 for r in PLAIN], random_return=20)
    assert better.non_inferior and not better.equivalent
    wide = stats.non_inferior(PLAIN, [100, 900] * 5, random_return=20)
    assert wide.verdict == "not shown to learn the same"


def test_negative_returns_are_scaled_by_the_distance_to_random():
    plain = [-10.0] * 10  # random -210: the bound is 10, whatever the sign of the returns
    assert stats.non_inferior(plain, [-19.0] * 10, random_return=-210).non_inferior
    assert not stats.non_inferior(plain, [-21.0] * 10, random_return=-210).non_inferior


def test_what_cannot_be_judged_says_so():
    few = stats.non_inferior(PLAIN[:2], PLAIN[:2], random_return=20)
    assert not few.non_inferior and few.verdict.startswith("cannot be judged: 2 seed")
    quick = stats.non_inferior(PLAIN[:5], PLAIN[:5], random_return=20)
    assert quick.non_inferior and quick.verdict.endswith("(quick: do not cite)")
    nothing_learnt = stats.non_inferior(PLAIN, PLAIN, random_return=490)
    assert not nothing_learnt.non_inferior and "no better than random" in nothing_learnt.verdict
    with pytest.raises(ValueError, match="margin"):
        stats.non_inferior(PLAIN, PLAIN, 20, margin=0)
