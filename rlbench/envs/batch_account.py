"""The accounting of `portfolio.py` for N accounts at once: pure functions of float64 tensors.

Every operation stands in the same order as in the plain functions, so that in eager mode on the CPU each account's cash,
shares and equity are the same to the last bit. Branches become `torch.where`; no value is read on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rlbench.envs.portfolio import trade_costs


class Tariff(NamedTuple):
    """What depends on the action alone, worked out once in Python floats: (P,) float64, one entry a position."""

    position: Tensor
    buy_divisor: Tensor  # of the value missing, for a purchase
    sell_divisor: Tensor  # of the value in excess, for a sale
    buy_cost: float
    sell_cost: float
    borrow_rate: float


def tariff(positions: Sequence[float], fee: float, slippage: float, borrow_rate: float, device: torch.device) -> Tariff:
    """The tariff of `TradingEnv`'s arguments."""
    buy, sell = trade_costs(fee, slippage)

    def table(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=device)

    return Tariff(
        table(list(positions)),
        table([1.0 - buy + buy * p for p in positions]),
        table([1.0 - sell * p for p in positions]),
        buy,
        sell,
        borrow_rate,
    )


def rebalance(cash: Tensor, shares: Tensor, close: Tensor, action: Tensor, costs: Tariff) -> tuple[Tensor, Tensor]:
    """Trade so that position `action` holds after costs, as `portfolio.rebalance` does: `(cash, shares)`, (N,) each."""
    position = costs.position[action]
    held = shares * close
    missing = position * (cash + held) - held
    buys, sells = missing > 0.0, missing < 0.0
    buy_divisor, sell_divisor = costs.buy_divisor[action], costs.sell_divisor[action]
    bought = missing / buy_divisor
    sold = -missing / sell_divisor
    new_cash = torch.where(buys, cash - bought, torch.where(sells, cash + sold * (1.0 - costs.sell_cost), cash))
    new_shares = torch.where(
        buys,
        shares + bought * (1.0 - costs.buy_cost) / close,
        torch.where(sells, shares - sold / close, shares),
    )
    divisor = torch.where(buys, buy_divisor, torch.where(sells, sell_divisor, 1.0))
    ruined = (divisor <= 0.0) | (new_cash + new_shares * close <= 0.0)
    flat = ruined | (position == 0.0)  # a flat account holds no rounding dust
    return torch.where(ruined, 0.0, new_cash), torch.where(flat, 0.0, new_shares)


def interest(cash: Tensor, shares: Tensor, close: Tensor, borrow_rate: float) -> Tensor:
    """Interest of one bar (N,) on borrowed shares and cash, as `portfolio.interest` has it."""
    borrowed = torch.where(shares < 0.0, 0.0 - shares * close, 0.0)
    return borrow_rate * torch.where(cash < 0.0, borrowed - cash, borrowed)
