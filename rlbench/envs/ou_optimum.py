"""The best causal policy on an Ornstein-Uhlenbeck market: the most expected log growth a bar that anyone could earn who
knows the process, but not its future.

Market: the deviation x of the log price follows x' = phi * x + sigma * e, e standard normal. What a policy may know is
(x, position held, deviation at which it was entered); the last of these, because a short or fractional exposure drifts
while it is held. Relative value iteration (Puterman, Markov Decision Processes, 1994, section 8.5.5) solves the average
reward problem on a grid of deviations.

What is approximated: x lives on an even grid of five stationary standard deviations to each side, its transition
probabilities are the normal density at the grid points, scaled to sum to one (for a spacing of at most half of sigma
the error is far below that of the cut at five deviations); values between grid points are interpolated linearly; the
policy is the one for an endless run, so that it overlooks that a position at the end of an episode is not sold; there
is no interest. `OUPolicy.growth` computed on two grids tells how much the grid matters. Where a drifted account would be
worth less than 1e-6 of its value at entry, it counts as that much.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlbench.envs.checks import checked_count, checked_positions, checked_positive, checked_rate
from rlbench.envs.ou_policy import OUPolicy, held_value, switch_log_cost
from rlbench.envs.portfolio import trade_costs

_SPAN = 5.0  # grid half-width, in stationary standard deviations
_MOST_POINTS = 801


class _Holding(NamedTuple):
    """What one position earns and what leaving it costs; n is N, or 1 where the exposure never drifts."""

    gain: np.ndarray  # (n, N) expected log growth of the next bar, [entry deviation, deviation]
    leave: np.ndarray  # (P, n, N) log share of equity left after switching to each position


def best_causal_policy(
    process: Mapping[str, Any],
    positions: Sequence[float] = (-1, 0, 1),
    fee: float = 1e-4,
    slippage: float = 0.0,
    *,
    points: int | None = None,
    tolerance: float = 1e-10,
    progress: bool | None = None,
) -> OUPolicy:
    """Policy with the most expected log growth a bar, for an Ornstein-Uhlenbeck process and the trading env's costs.

    `process` is `market.process`: kind, phi, sigma, log_mean. `points` is the size of the grid (odd; by default as many
    as the spacing rule asks for, at least 201). Iteration stops when the growth a bar is known to `tolerance`; the
    number of rounds is about log(tolerance) / log(phi), each of P * points^3 multiplications.

    Raises: ValueError naming a refused argument.
    """
    phi, sigma = _checked_process(process)
    targets = np.array(checked_positions(positions))  # (P,)
    costs = trade_costs(checked_rate("fee", fee), checked_rate("slippage", slippage))
    tolerance = checked_positive("tolerance", tolerance)
    grid = _grid(phi, sigma, points)  # (N,)
    kernel = _kernel(grid, phi, sigma)  # (N, N)
    holdings = [_holding(target, targets, grid, kernel, costs) for target in targets]
    growth, continues, rounds = _iterate(holdings, kernel, tolerance, progress)
    return OUPolicy(
        positions=tuple(targets.tolist()),
        costs=costs,
        log_mean=float(process["log_mean"]),
        grid=grid,
        hold=continues,
        growth=growth,
        rounds=rounds,
    )


def _checked_process(process: Mapping[str, Any]) -> tuple[float, float]:
    accepted = "accepted: the .process of a market from rlbench.simulate.ornstein_uhlenbeck"
    kind = process.get("kind") if isinstance(process, Mapping) else None
    if kind != "ornstein_uhlenbeck":
        raise ValueError(f"process of kind {kind!r} has no best causal policy here; {accepted}.")
    phi, sigma = float(process["phi"]), float(process["sigma"])
    if not (0.0 <= phi < 1.0 and sigma > 0.0 and math.isfinite(sigma)):
        raise ValueError(f"process has phi={phi}, sigma={sigma}; accepted: 0 <= phi < 1 and a sigma above 0.")
    return phi, sigma


def _grid(phi: float, sigma: float, points: int | None) -> np.ndarray:  # (N,)
    half = _SPAN * sigma / math.sqrt(1.0 - phi**2)
    needed = 2 * math.ceil(2.0 * half / sigma) + 1  # spacing of half a sigma
    if points is None:
        points = max(201, needed)
    why = f"the process needs a grid of at least {needed} points, and time grows with its cube"
    points = checked_count("points", points, most=_MOST_POINTS, why=why)
    if points < needed or points % 2 == 0:
        raise ValueError(f"points={points} is refused; accepted: an odd number from {needed} to {_MOST_POINTS}.")
    return np.linspace(-half, half, points)


def _kernel(grid: np.ndarray, phi: float, sigma: float) -> np.ndarray:
    """Transition probabilities (N, N) from row to column."""
    density = np.exp(-0.5 * ((grid[None, :] - phi * grid[:, None]) / sigma) ** 2)
    return density / density.sum(axis=1, keepdims=True)


def _holding(
    target: float, targets: np.ndarray, grid: np.ndarray, kernel: np.ndarray, costs: tuple[float, float]
) -> _Holding:
    """Gain and cost of leaving for one position, over entry deviation (rows) and deviation (columns)."""
    entries = grid[:1] if target in (0.0, 1.0) else grid
    value, exposure = held_value(target, grid[None, :] - entries[:, None])  # (n, N)
    if target in (0.0, 1.0):
        exposure = np.full_like(value, target)
    log_value = np.log(value)
    gain = log_value @ kernel.T - log_value
    return _Holding(gain, np.stack([switch_log_cost(exposure, float(other), costs) for other in targets]))


def _iterate(
    holdings: list[_Holding], kernel: np.ndarray, tolerance: float, progress: bool | None
) -> tuple[float, list[np.ndarray], int]:
    """Relative value iteration: growth a bar, value of holding on [(n, N)] for each position, rounds taken."""
    from tqdm import tqdm

    values = [np.zeros_like(holding.gain) for holding in holdings]  # log growth to come, relative
    disable = None if progress is None else not progress
    with tqdm(desc="best causal policy", unit="round", disable=disable, delay=2.0, leave=False) as bar:
        for rounds in range(1, 1_000_001):
            hold = [h.gain + value @ kernel.T for h, value in zip(holdings, values, strict=True)]  # (n, N)
            enter = [on_entry(table) for table in hold]  # (N,)
            low, high = math.inf, -math.inf
            for held, holding in enumerate(holdings):
                better = hold[held].copy()
                for other, value in enumerate(enter):
                    if other != held:
                        np.maximum(better, holding.leave[other] + value, out=better)
                change = better - values[held]
                low, high = min(low, float(change.min())), max(high, float(change.max()))
                values[held] = better
            anchor = values[0][0, values[0].shape[1] // 2]
            values = [value - anchor for value in values]
            bar.update()
            if high - low < tolerance:
                return 0.5 * (low + high), hold, rounds
    raise RuntimeError(f"value iteration did not reach tolerance={tolerance} within {rounds} rounds; raise it.")


def on_entry(table: np.ndarray) -> np.ndarray:  # (N,)
    """Value of holding a position just entered, at each deviation, from a table (n, N)."""
    return table[0] if len(table) == 1 else np.diagonal(table)
