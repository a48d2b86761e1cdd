"""The best causal policy on the Ornstein-Uhlenbeck market: by hand, in its shape, and against other policies."""

import math

import numpy as np
import pytest

from rlbench import simulate
from rlbench.envs.ou_optimum import best_causal_policy
from rlbench.envs.references import run_policy
from rlbench.envs.trading import TradingEnv

SHORT, FLAT, LONG = 0, 1, 2
PHI, SIGMA = 0.9, 0.01
SPREAD = SIGMA / math.sqrt(1.0 - PHI**2)  # stationary standard deviation
PROCESS = {"kind": "ornstein_uhlenbeck", "phi": PHI, "sigma": SIGMA, "log_mean": math.log(50.0)}


@pytest.fixture(scope="module")
def by_fee():
    return {fee: best_causal_policy(PROCESS, fee=fee) for fee in (0.0, 1e-4, 1e-3, 5e-3)}


@pytest.fixture(scope="module")
def market():
    return simulate.ornstein_uhlenbeck(20_000, seed=11, reversion=1.0 - PHI, volatility=SIGMA)


def log_equities(env, choose):
    return np.log(run_policy(env, choose)["equity"].to_numpy())


def mean_and_error(log_equity):
    """Mean log growth a bar and its standard error, from blocks of 200 bars, beyond which nothing is remembered."""
    blocks = np.diff(log_equity[::200]) / 200
    return blocks.mean(), blocks.std(ddof=1) / math.sqrt(len(blocks))


def env_of(market, **kwargs):
    return TradingEnv(market, **{"episode_length": None, "random_start": False} | kwargs)


def test_long_or_flat_without_fee_is_the_sign_of_the_expected_return():
    policy = best_causal_policy(PROCESS, (0, 1), fee=0.0)
    # Held long, the next log return is -(1 - phi) x on average: long below the mean, flat above.
    for deviation in np.linspace(-4.0, 4.0, 81) * SPREAD:
        if abs(deviation) > 1e-9:
            assert policy.action(deviation, 0, 0.0) == policy.action(deviation, 1, 1.0) == (deviation < 0.0)
    # E max(-(1 - phi) x, 0) for normal x: (1 - phi) * spread / sqrt(2 pi).
    assert policy.growth == pytest.approx(0.1 * SPREAD / math.sqrt(2.0 * math.pi), rel=1e-3)


def test_all_in_on_independent_deviations():
    # phi = 0: log price is white noise around its mean; long below it earns E max(-x, 0) = sigma / sqrt(2 pi) a bar.
    policy = best_causal_policy(PROCESS | {"phi": 0.0}, (0, 1), fee=0.0)
    assert policy.growth == pytest.approx(SIGMA / math.sqrt(2.0 * math.pi), rel=1e-3)


def test_short_flat_long_without_fee_follows_the_sign_too(by_fee):
    policy = by_fee[0.0]
    for deviation in np.linspace(0.15, 4.0, 40) * SPREAD:
        for held, exposure in ((SHORT, -1.0), (FLAT, 0.0), (LONG, 1.0), (-1, 0.0)):
            assert policy.action(deviation, held, exposure) == SHORT
            assert policy.action(-deviation, held, exposure) == LONG


def test_one_position_leaves_nothing_to_choose():
    policy = best_causal_policy(PROCESS, (1,), fee=0.01)
    assert policy.action(0.0, -1, 0.0) == 0
    assert policy.growth == pytest.approx(0.0, abs=1e-9)  # a price that returns to its mean does not grow


def test_the_no_trade_band_widens_with_the_fee(by_fee):
    grid = np.linspace(0.0, 3.0, 601)  # in spreads

    def first(policy, held, exposure, sign, wanted):
        """Least deviation, on one side, at which the policy goes to `wanted`."""
        return next(d for d in grid if policy.action(sign * d * SPREAD, held, exposure) == wanted)

    for held, exposure, sign, wanted in ((FLAT, 0.0, -1, LONG), (FLAT, 0.0, 1, SHORT), (SHORT, -1.0, -1, LONG)):
        edges = [first(policy, held, exposure, sign, wanted) for policy in by_fee.values()]
        assert edges == sorted(edges) and edges[-1] > edges[0] + 0.2, (held, wanted, edges)
    # Long, it stays long at the mean once there is a fee worth the name, and so does a short.
    assert by_fee[1e-3].action(0.0, LONG, 1.0) == LONG
    assert by_fee[1e-3].action(0.0, SHORT, -1.0) == SHORT
    assert by_fee[1e-3].action(0.0, FLAT, 0.0) == FLAT


def test_growth_falls_with_the_fee_and_rises_with_the_choice(by_fee):
    growth = [policy.growth for policy in by_fee.values()]
    assert growth == sorted(growth, reverse=True)
    assert best_causal_policy(PROCESS, (0, 1), fee=1e-3).growth < by_fee[1e-3].growth
    assert best_causal_policy(PROCESS, (0, 1), fee=0.9).growth == pytest.approx(0.0, abs=1e-9)
    assert best_causal_policy(PROCESS, fee=1e-3, slippage=1e-3).growth < by_fee[1e-3].growth


def test_a_finer_grid_changes_little(by_fee):
    for fee, policy in by_fee.items():
        coarse = best_causal_policy(PROCESS, fee=fee, points=101)
        assert len(policy.grid) == 201
        assert coarse.growth == pytest.approx(policy.growth, rel=1e-3)


@pytest.mark.parametrize("fee", [0.0, 1e-3, 5e-3])
def test_growth_is_what_the_env_pays(by_fee, market, fee):
    env = env_of(market, fee=fee)
    policy = best_causal_policy(market.process, fee=fee)
    assert policy.growth == pytest.approx(by_fee[fee].growth, rel=1e-9)
    mean, error = mean_and_error(log_equities(env, lambda _: policy.act(env)))
    assert abs(mean - policy.growth) < 4 * error
    assert error < 0.1 * policy.growth


def expected_growth(env, choose, process):
    """Growth a bar with each bar's return replaced by its expectation, which takes the luck of the path out.

    A reward is the log of costs plus log(1 + w (e^r - 1)), w the exposure after the fill; the second part's
    expectation over r given the deviation is taken by Gauss-Hermite quadrature.
    """
    env.reset()
    rewards, exposures, log_prices = [], [], [math.log(env.price)]
    ended = False
    while not ended:
        action = choose(log_prices[-1] - process["log_mean"])
        exposures.append(env.exposure if action == env.held else env.positions[action])
        _, reward, _, ended, _ = env.step(action)
        rewards.append(reward)
        log_prices.append(math.log(env.price))
    exposure, log_price = np.array(exposures), np.array(log_prices)
    costs = np.array(rewards) - np.log1p(exposure * np.expm1(np.diff(log_price)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    drift = (process["phi"] - 1.0) * (log_price[:-1] - process["log_mean"])
    returns = drift[:, None] + process["sigma"] * nodes  # (T - 1, nodes)
    gains = np.log1p(exposure[:, None] * np.expm1(returns)) @ (weights / weights.sum())
    return float(np.mean(costs + gains))


def threshold(enter, leave):
    """Long below -enter until above -leave, short above enter until below leave, else flat (all in spreads)."""
    held = [FLAT]

    def choose(deviation):
        score = deviation / SPREAD
        if score > enter or (held[0] == SHORT and score > leave):
            held[0] = SHORT
        elif score < -enter or (held[0] == LONG and score < -leave):
            held[0] = LONG
        else:
            held[0] = FLAT
        return held[0]

    return choose


@pytest.mark.parametrize("fee", [1e-4, 2e-3])
def test_beats_buy_and_hold_and_every_threshold(market, fee):
    env = env_of(market, fee=fee)
    policy = best_causal_policy(market.process, fee=fee)
    best = expected_growth(env, lambda _: policy.act(env), market.process)
    assert best == pytest.approx(policy.growth, rel=0.02)
    assert best > 10 * abs(expected_growth(env, lambda _: LONG, market.process))
    for enter in (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0):
        for leave in (-enter, 0.0, 0.5 * enter):
            other = expected_growth(env, threshold(enter, leave), market.process)
            assert best > other, (enter, leave)


@pytest.mark.parametrize("positions", [(-1, 0, 1), (-1, 1), (-0.5, 0.5, 2)])
@pytest.mark.parametrize("window", [1, 3])
def test_from_observation_makes_the_same_choices(market, positions, window):
    short = market.slice(0, 800)
    env = env_of(short, fee=1e-3, positions=positions, window=window)
    policy = best_causal_policy(market.process, positions, fee=1e-3)
    choose = policy.from_observation(short)
    seen, from_state = [], []

    def both(observation):
        seen.append(observation)
        from_state.append(policy.act(env))
        return choose(observation)

    run_policy(env, both)
    batch = choose(np.stack(seen), None)  # (N, D)
    assert batch.dtype == np.int64
    assert batch.tolist() == from_state
    assert len(set(from_state)) > 1


def test_a_set_without_flat_starts_from_cash():
    policy = best_causal_policy(PROCESS, (-1, 1), fee=1e-3)
    assert policy.action(2 * SPREAD, -1, 0.0) == 0
    assert policy.action(-2 * SPREAD, -1, 0.0) == 1
    assert policy.action(-9 * SPREAD, -1, 0.0) == 1  # beyond the grid its edge counts


@pytest.mark.parametrize(
    ("kwargs", "name"),
    [
        ({"process": {"kind": "sine"}}, "process of kind 'sine'"),
        ({"process": None}, "process of kind None"),
        ({"process": PROCESS | {"phi": 1.0}}, "process has phi=1.0"),
        ({"process": PROCESS | {"sigma": 0.0}}, "process has .*sigma=0.0"),
        ({"process": PROCESS | {"phi": 0.99999}}, "points="),
        ({"points": 200}, "points=200"),
        ({"points": 5}, "points=5"),
        ({"fee": 1.0}, "fee=1.0"),
        ({"slippage": -1.0}, "slippage=-1.0"),
        ({"positions": ()}, "positions="),
        ({"tolerance": 0.0}, "tolerance=0.0"),
    ],
)
def test_bad_arguments_are_named(kwargs, name):
    with pytest.raises(ValueError, match=rf"^{name}.*accepted"):
        best_causal_policy(**{"process": PROCESS} | kwargs)
