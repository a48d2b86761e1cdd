"""Robust statistics and bootstrap intervals, numpy only.

Every function draws from its own generator, seeded by an argument, so that the same numbers give the same interval.
A `statistic` is called as `statistic(samples, axis=-1)` on an array whose last axis is the sample. R = resamples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CITABLE_SEEDS = 10
MIN_SEEDS = 3  # the interval of one or two seeds says nothing about the others


def interquartile_mean(values: np.ndarray, axis: int = -1) -> np.ndarray | float:
    """Mean of the middle half: floor(n / 4) values are dropped at each end (the 25 % trimmed mean).

    The same definition as in Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical
    precipice". One to three values: their mean.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=axis)
    count = ordered.shape[axis]
    if count == 0:
        raise ValueError("interquartile mean of no values")
    middle = range(count // 4, count - count // 4)
    return np.take(ordered, middle, axis=axis).mean(axis=axis)


def bootstrap_interval(
    values: np.ndarray,
    statistic: Callable[..., Any] = np.mean,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile-bootstrap interval of `statistic` over independent `values`. # (n,)"""
    return stratified_bootstrap(
        [values], lambda groups: statistic(groups[0], axis=-1), level=level, resamples=resamples, seed=seed
    )


def stratified_bootstrap(
    groups: Sequence[np.ndarray],
    statistic: Callable[[list[np.ndarray]], Any],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile-bootstrap interval; each group (a task, a variant) is resampled within itself.

    `groups[g]` is (n_g,); `statistic` gets the list of resampled groups, each (R, n_g), and returns (R,).
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for group in groups:
        group = _checked(group)
        drawn.append(group[rng.integers(0, len(group), (resamples, len(group)))])  # (R, n_g)
    return _percentiles(statistic(drawn), level)


def block_bootstrap(
    values: np.ndarray,
    statistic: Callable[..., Any] = np.mean,
    *,
    mean_block: float | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval from the stationary bootstrap (Politis and Romano 1994), for values with memory. # (T,)

    Blocks start anywhere, wrap around the end, and have a geometric length of mean `mean_block` bars
    (default: the cube root of T, at least 1), so that dependence up to about that length is kept.
    """
    values = _checked(values)
    count = len(values)
    mean_block = max(1.0, count ** (1 / 3)) if mean_block is None else float(mean_block)
    if mean_block < 1:
        raise ValueError(f"mean_block={mean_block}: a block has at least one bar")
    rng = np.random.default_rng(seed)
    at_once = max(1, 2_000_000 // count)  # bounds the memory of long series
    outcomes = []
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        outcomes.append(statistic(values[stationary_indices(rng, rows, count, mean_block)], axis=-1))
    return _percentiles(np.concatenate(outcomes), level)


def stationary_indices(rng: np.random.Generator, rows: int, count: int, mean_block: float) -> np.ndarray:
    """Indices into a series of `count` bars, in geometric blocks of mean length `mean_block`. # (rows, count)"""
    starts = rng.integers(0, count, (rows, count))
    new_block = rng.random((rows, count)) < 1.0 / mean_block
    new_block[:, 0] = True
    position = np.arange(count)
    block_began = np.maximum.accumulate(np.where(new_block, position, 0), axis=1)
    return (np.take_along_axis(starts, block_began, axis=1) + position - block_began) % count


def sharpe_ratio(returns: np.ndarray, bars_per_year: float, axis: int = -1) -> np.ndarray | float:
    """Yearly Sharpe ratio of returns a bar over a zero risk-free rate; NaN where the returns do not vary. # (..., T)"""
    returns = np.asarray(returns, dtype=np.float64)
    if returns.shape[axis] < 2:
        raise ValueError(f"Sharpe ratio of {returns.shape[axis]} return(s): at least two are needed")
    spread = returns.std(axis=axis, ddof=1)
    varies = returns.max(axis=axis) > returns.min(axis=axis)
    ratio = returns.mean(axis=axis) / np.where(varies, spread, np.nan) * math.sqrt(bars_per_year)
    return ratio if np.ndim(ratio) else float(ratio)


@dataclass(frozen=True)
class NonInferiority:
    """Does `other` learn the same as `plain`? All in units of return; `bound` is margin * (plain - random)."""

    plain: float
    other: float
    difference: float
    low: float
    high: float
    bound: float
    seeds: int

    @property
    def judged(self) -> bool:
        """False when there are too few seeds, or plain is no better than random, so that nothing can be said."""
        return self.seeds >= MIN_SEEDS and self.bound > 0

    @property
    def non_inferior(self) -> bool:
        """The whole interval lies above -bound."""
        return self.judged and self.low >= -self.bound

    @property
    def equivalent(self) -> bool:
        """The whole interval lies between -bound and +bound: neither worse nor better."""
        return self.non_inferior and self.high <= self.bound

    @property
    def verdict(self) -> str:
        """One phrase for a report; with fewer than ten seeds it carries the stamp "quick: do not cite"."""
        if self.seeds < MIN_SEEDS:
            return f"cannot be judged: {self.seeds} seed(s), at least {MIN_SEEDS} needed, {CITABLE_SEEDS} to cite"
        if self.bound <= 0:
            return "cannot be judged: plain is no better than random"
        if self.non_inferior:
            text = "learns the same"
        else:
            text = "learns less" if self.high < -self.bound else "not shown to learn the same"
        return text if self.seeds >= CITABLE_SEEDS else f"{text} (quick: do not cite)"


def non_inferior(
    plain_returns: Sequence[float],
    other_returns: Sequence[float],
    random_return: float,
    margin: float = 0.05,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> NonInferiority:
    """Compare final returns, one a seed, of two ways to train; the random policy's return sets the scale.

    The 95 % interval of the difference of interquartile means comes from a bootstrap stratified by way. Raises
    ValueError for empty, non-finite or non-vector input and for a margin that is not positive.
    """
    if not margin > 0 or not math.isfinite(random_return):
        raise ValueError(f"margin={margin}, random_return={random_return}: margin above 0 and a finite return, please")
    plain, other = _checked(plain_returns), _checked(other_returns)
    centre_plain, centre_other = float(interquartile_mean(plain)), float(interquartile_mean(other))
    low, high = stratified_bootstrap(
        [plain, other],
        lambda drawn: interquartile_mean(drawn[1]) - interquartile_mean(drawn[0]),
        resamples=resamples,
        seed=seed,
    )
    return NonInferiority(
        plain=centre_plain,
        other=centre_other,
        difference=centre_other - centre_plain,
        low=low,
        high=high,
        bound=margin * (centre_plain - random_return),
        seeds=min(len(plain), len(other)),
    )


def _checked(values: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"expected a non-empty vector of numbers, found shape {array.shape}")
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"value {where} is {array[where]}: only finite numbers can be resampled")
    return array


def _percentiles(outcomes: np.ndarray, level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"level={level}: must lie between 0 and 1, e.g. 0.95")
    tail = 50 * (1 - level)
    low, high = np.percentile(outcomes, [tail, 100 - tail])
    return float(low), float(high)
