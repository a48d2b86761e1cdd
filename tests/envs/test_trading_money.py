"""What the trading env pays and charges: hand-worked numbers and invariants."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.envs.trading import FLOOR, TradingEnv

SHORT, FLAT, LONG = 0, 1, 2


def test_fee_sign_and_size_on_a_flat_price(whole, equities):
    trips = equities(whole([100.0] * 5, fee=0.005), [LONG, FLAT, LONG, FLAT])
    assert trips[2] == pytest.approx(0.990025, abs=1e-12)
    assert trips[4] == pytest.approx(0.980149500625, abs=1e-12)
    # Short: equity 1/1.005 after the sale; covering it pays 0.005/0.995 of that again.
    trips = equities(whole([100.0] * 5, fee=0.005), [SHORT, FLAT, SHORT, FLAT])
    one = (1 / 1.005) * (1 - 0.005 / 0.995)
    assert trips[2] == pytest.approx(one, abs=1e-12)
    assert trips[4] == pytest.approx(one**2, abs=1e-12)
    assert equities(whole([100.0] * 5), [LONG, FLAT, SHORT, FLAT]) == [1.0] * 5


def test_holding_costs_nothing_and_a_flip_pays_two_sides(whole, equities):
    curve = equities(whole([100.0] * 6, fee=0.005), [LONG, LONG, LONG, SHORT, SHORT])
    assert curve[1] == curve[2] == curve[3] == pytest.approx(0.995)
    # Long to short sells y with 0.995 - y = -(0.995 - 0.005 y): y = 1.99 / 1.005, twice the equity.
    assert curve[4] == pytest.approx(0.995 - 0.005 * 1.99 / 1.005, abs=1e-12)
    assert curve[5] == curve[4]


@given(
    seed=st.integers(0, 10_000),
    fees=st.tuples(st.floats(0.0, 0.1), st.floats(0.0, 0.1)),
    actions=st.lists(st.integers(0, 4), min_size=1, max_size=12),
)
@settings(max_examples=150, deadline=None)
def test_more_fee_never_gives_more_equity(whole, equities, seed, fees, actions):
    close = np.exp(np.cumsum(np.random.default_rng(seed).normal(0.0, 0.05, len(actions) + 1)))
    positions = (-1.0, -0.5, 0.0, 0.5, 1.5)
    low, high = (equities(whole(close, fee=fee, positions=positions), actions)[-1] for fee in sorted(fees))
    assert high <= low * (1.0 + 1e-12)
    doubled = equities(whole(close, fee=2 * fees[0], positions=positions), actions)[-1]
    single = equities(whole(close, fee=fees[0], positions=positions), actions)[-1]
    assert doubled <= single * (1.0 + 1e-12)


@pytest.mark.parametrize(("last", "expected"), [(90.0, [110.0, 100.0, 90.0]), (110.0, [90.0, 100.0, 110.0])])
def test_shorts_earn_on_falls(whole, equities, last, expected):
    for action, equity in zip([SHORT, FLAT, LONG], expected, strict=True):
        assert equities(whole([100.0, last], initial_equity=100.0), [action])[-1] == pytest.approx(equity, abs=1e-9)


def test_no_look_ahead(toy_market):
    # Independent bars of ±1 %; the only feature is the return of the bar that has just closed.
    steps = np.random.default_rng(0).choice([-0.01, 0.01], size=100_000)
    market = toy_market(100.0 * np.cumprod(1.0 + steps), steps[:, None] * 100.0)
    env = TradingEnv(market, fee=0.0, episode_length=None, random_start=False)
    observation, info = env.reset()
    rewards, growth = [], []  # log and simple returns; seeing a bar before trading on it would make each of them +1 %
    truncated, bar = False, 0
    while not truncated:
        assert (observation[0] > 0) == (steps[bar] > 0)
        before = info["equity"]
        observation, reward, terminated, truncated, info = env.step(LONG if observation[0] > 0 else SHORT)
        assert not terminated
        rewards.append(reward)
        growth.append(info["equity"] / before - 1.0)
        bar += 1
    assert bar == 99_999
    for values in (rewards, growth):
        assert abs(np.mean(values)) < 4 * np.std(values) / math.sqrt(len(values))


def test_drifting_short_and_fraction(whole, equities):
    # Short one share from 100 in cash: 200 cash. At 110 equity is 90, at 121 it is 79: the one share stays.
    curve = equities(whole([100.0, 110.0, 121.0], initial_equity=100.0), [SHORT, SHORT])
    assert curve == pytest.approx([100.0, 90.0, 79.0])
    curve = equities(whole([100.0, 200.0, 400.0], positions=(0, 0.5)), [1, 1])
    assert curve == pytest.approx([1.0, 1.5, 2.5])
    # The exposure that has drifted to 2/3 is brought back to a half only by way of another position.
    curve = equities(whole([100.0, 200.0, 200.0, 400.0], positions=(0, 0.5)), [1, 0, 1])
    assert curve == pytest.approx([1.0, 1.5, 1.5, 2.25])


def test_interest_accrues_at_every_bar_held(whole, equities):
    # Short one share at 100, 1 % a bar: 200 in cash pays 1.00 at 100, 1.10 at 110, 0.90 at 90.
    curve = equities(whole([100.0, 100.0, 110.0, 90.0], borrow_rate=0.01, initial_equity=100.0), [SHORT] * 3)
    assert curve == pytest.approx([100.0, 99.0, 87.9, 107.0])
    # Twice long: 100 borrowed, which grows to 101, then 102.01, unpaid interest included.
    curve = equities(whole([100.0] * 3, borrow_rate=0.01, positions=(0, 2), initial_equity=100.0), [1, 1])
    assert curve == pytest.approx([100.0, 99.0, 97.99])
    # Nothing is borrowed at flat, half or fully long, so nothing is owed.
    curve = equities(whole([100.0] * 4, borrow_rate=0.01, positions=(0, 0.5, 1)), [0, 1, 2])
    assert curve == pytest.approx([1.0] * 4)


def test_slippage_moves_the_fill_price(whole, equities):
    # Buy at 125, sell at 75: 0.8 of the equity is left after the purchase, three quarters of that after the sale.
    curve = equities(whole([100.0] * 3, slippage=0.25), [LONG, FLAT])
    assert curve == pytest.approx([1.0, 0.8, 0.6])


@given(
    seed=st.integers(0, 10_000),
    positions=st.lists(st.sampled_from([-2.0, -1.0, -0.3, 0.0, 0.4, 1.0, 3.0]), min_size=1, max_size=5, unique=True),
    rate=st.sampled_from([0.0, 0.01]),
)
@settings(max_examples=60, deadline=None)
def test_log_rewards_sum_to_the_equity_ratio_also_through_bankruptcy(whole, seed, positions, rate):
    generator = np.random.default_rng(seed)
    close = np.exp(np.cumsum(generator.normal(0.0, 0.3, 40)))
    env = whole(close, fee=0.01, positions=positions, borrow_rate=rate, slippage=0.001, initial_equity=7.0)
    _, info = env.reset()
    total, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, info = env.step(int(generator.integers(len(positions))))
        assert observation in env.observation_space
        total += reward
        done = terminated or truncated
    assert math.exp(total) == pytest.approx(info["equity"] / 7.0, rel=1e-9)
    assert terminated == (info["equity"] == FLOOR * 7.0)


def test_bankruptcy_terminates_at_the_floor(whole):
    env = whole([100.0, 250.0, 250.0], initial_equity=5.0)
    env.reset()
    observation, reward, terminated, truncated, info = env.step(SHORT)
    assert (terminated, truncated) == (True, False)
    assert info["equity"] == pytest.approx(5e-6, rel=1e-12) and info["position"] == 0.0
    assert reward == pytest.approx(math.log(1e-6))
    assert observation in env.observation_space
    with pytest.raises(RuntimeError, match="reset"):
        env.step(FLAT)


def test_bankruptcy_at_the_very_last_bar_is_not_a_truncation(whole):
    env = whole([100.0, 250.0])
    env.reset()
    assert env.step(SHORT)[2:4] == (True, False)


def test_costs_can_ruin_at_the_fill(whole):
    env = whole([100.0, 180.0, 180.0], fee=0.5)
    env.reset()
    env.step(SHORT)  # one and a third in cash, two thirds short; 0.1333 of equity left at 180
    observation, reward, terminated, _, info = env.step(FLAT)  # covering 1.2 would cost 2.4
    assert terminated and info["equity"] == FLOOR and math.isfinite(reward)
    assert observation in env.observation_space


def test_a_set_without_flat_still_starts_flat(whole, equities):
    env = whole([100.0, 110.0, 121.0], positions=(-1, 1), fee=0.01)
    assert env.reset()[1] == {"equity": 1.0, "position": 0.0}
    assert equities(env, [1, 1]) == pytest.approx([1.0, 1.089, 1.1979])


def test_custom_reward_gets_the_step(whole):
    seen = []

    def reward(step):
        seen.append(step)
        return step.equity - step.previous_equity

    env = whole([100.0, 110.0, 99.0], reward=reward, initial_equity=10.0)
    env.reset()
    assert env.step(LONG)[1] == pytest.approx(1.0)
    assert env.step(LONG)[1] == pytest.approx(-1.1)
    assert [step.filled for step in seen] == [True, False]
    assert [step.bar for step in seen] == [1, 2]
    assert seen[1].close == 99.0 and seen[1].previous_close == 110.0
    assert seen[1].position == 1.0 and seen[1].exposure == pytest.approx(1.0)
