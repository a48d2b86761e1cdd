"""The accounting of one account that holds cash and shares of one asset, in float64.

An account is two Python floats: `cash` (negative: borrowed money) and `shares` (negative: sold short). Its equity is
`cash + shares * close`. A *position* p is a target exposure: after a fill the shares are worth exactly p times the
equity that is left after costs. Between fills the holdings stay as they are, so the exposure drifts with the price.

Plain Python floats, because the env calls these functions once a step and numpy scalars would be slower.
"""

FLOOR = 1e-6  # of the initial equity; an account at or below it is bankrupt


def trade_costs(fee: float, slippage: float) -> tuple[float, float]:
    """Share of the traded value that is lost in a purchase and in a sale: `(buy_cost, sell_cost)`.

    A purchase fills at close * (1 + slippage), a sale at close * (1 - slippage); `fee` is the share of the traded value
    that the broker keeps. Cash c buys c * (1 - fee) / (1 + slippage) worth of shares, valued at the close; shares worth
    v sell for v * (1 - fee) * (1 - slippage). Without slippage both costs equal the fee.
    """
    if slippage == 0.0:
        return fee, fee  # kept apart, because 1 - (1 - fee) is not exactly the fee
    return 1.0 - (1.0 - fee) / (1.0 + slippage), 1.0 - (1.0 - fee) * (1.0 - slippage)


def rebalance(
    cash: float, shares: float, close: float, position: float, buy_cost: float, sell_cost: float
) -> tuple[float, float]:
    """Trade so that `position` holds after costs; returns the new `(cash, shares)`.

    With V the equity before and x the value traded, a purchase takes x from cash and adds x * (1 - buy_cost) of shares:
    (h + x * (1 - buy_cost)) = p * (V - x * buy_cost), h the value held. A sale of y adds y * (1 - sell_cost) to cash:
    (h - y) = p * (V - y * sell_cost). Both are solved for x and y. Where no trade reaches the target (the costs of a
    trade eat equity faster than it moves the exposure), or nothing is left, the account is ruined: `(0.0, 0.0)`.
    """
    held = shares * close
    missing = position * (cash + held) - held
    if missing > 0.0:
        divisor = 1.0 - buy_cost + buy_cost * position
        if divisor <= 0.0:
            return 0.0, 0.0
        value = missing / divisor
        cash -= value
        shares += value * (1.0 - buy_cost) / close
    elif missing < 0.0:
        divisor = 1.0 - sell_cost * position
        if divisor <= 0.0:
            return 0.0, 0.0
        value = -missing / divisor
        cash += value * (1.0 - sell_cost)
        shares -= value / close
    if cash + shares * close <= 0.0:
        return 0.0, 0.0
    return cash, (0.0 if position == 0.0 else shares)  # a flat account holds no rounding dust


def interest(cash: float, shares: float, close: float, borrow_rate: float) -> float:
    """Interest of one bar, in money: `borrow_rate` times what is borrowed, cash and shares (at this bar's close).

    It is taken from cash at the end of every bar held; unpaid interest on borrowed cash is therefore borrowed as well.
    """
    borrowed = 0.0
    if shares < 0.0:
        borrowed -= shares * close
    if cash < 0.0:
        borrowed -= cash
    return borrow_rate * borrowed
