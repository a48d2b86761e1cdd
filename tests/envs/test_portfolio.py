"""The accounting functions against numbers worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.envs.portfolio import interest, rebalance, trade_costs


def test_a_purchase_keeps_the_target_after_paying_the_fee():
    # 100 in cash, fee 0.5 %: all of it buys 99.5 worth of shares, which then are all the equity there is.
    cash, shares = rebalance(100.0, 0.0, 50.0, 1.0, 0.005, 0.005)
    assert (cash, shares) == pytest.approx((0.0, 1.99), abs=1e-12)


def test_a_leveraged_purchase_by_hand():
    # Fee 10 %, target 2 from 121: pay x, hold 0.9 x, equity 121 - 0.1 x; 0.9 x = 2 (121 - 0.1 x) gives x = 220.
    cash, shares = rebalance(121.0, 0.0, 1.0, 2.0, 0.1, 0.1)
    assert (cash, shares) == pytest.approx((-99.0, 198.0))


def test_a_short_sale_by_hand():
    # Fee 10 %, target -1 from 110: sell y, equity 110 - 0.1 y = y gives y = 100 and cash 110 + 90.
    cash, shares = rebalance(110.0, 0.0, 20.0, -1.0, 0.1, 0.1)
    assert (cash, shares) == pytest.approx((200.0, -5.0))


def test_slippage_and_fee_by_hand():
    # Fee 10 %, slippage 25 %: 100 buys 100 * 0.9 / 1.25 = 72 worth; 100 worth sells for 100 * 0.9 * 0.75 = 67.5.
    buy_cost, sell_cost = trade_costs(0.1, 0.25)
    assert (buy_cost, sell_cost) == pytest.approx((0.28, 0.325))
    assert trade_costs(0.1, 0.0) == (0.1, 0.1)


def test_a_target_already_held_trades_nothing():
    assert rebalance(50.0, 5.0, 10.0, 0.5, 0.1, 0.1) == (50.0, 5.0)


def test_flat_leaves_no_dust():
    cash, shares = rebalance(0.1, 0.3, 3.3, 0.0, 0.001, 0.001)
    assert shares == 0.0
    assert cash == pytest.approx(0.1 + 0.99 * 0.999)


@pytest.mark.parametrize(
    ("cash", "shares", "position", "fee"),
    [
        (4.0, -3.0, -1.0, 0.5),  # a purchase that costs equity as fast as it lowers the exposure
        (-2.0, 3.0, 2.0, 0.5),  # a sale that does
        (3.0, -2.5, 0.0, 0.5),  # covering the short costs more than there is
    ],
)
def test_a_trade_that_cannot_be_paid_ruins(cash, shares, position, fee):
    assert rebalance(cash, shares, 1.0, position, fee, fee) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("cash", "shares", "expected"),
    [(100.0, 1.0, 0.0), (200.0, -2.0, 1.0), (-300.0, 8.0, 3.0), (0.0, 0.0, 0.0)],
)
def test_interest_is_owed_on_what_is_borrowed(cash, shares, expected):
    assert interest(cash, shares, 50.0, 0.01) == pytest.approx(expected)


@given(
    exposure=st.floats(-2.0, 2.0),
    position=st.floats(-2.0, 2.0),
    close=st.floats(0.01, 1e4),
    fee=st.floats(0.0, 0.05),
)
def test_target_holds_and_cost_is_the_fee_on_the_value_traded(exposure, position, close, fee):
    cash, shares = rebalance(1.0 - exposure, exposure / close, close, position, fee, fee)
    equity = cash + shares * close
    assert shares * close == pytest.approx(position * equity, abs=1e-9)
    # The fee is a share of the cash spent in a purchase and of the shares sold in a sale.
    moved = shares * close - exposure
    gross = moved / (1.0 - fee) if moved > 0.0 else -moved
    assert 1.0 - equity == pytest.approx(fee * gross, abs=1e-9)
