"""Thousands of trading accounts in one call: `TradingEnv` as pure functions of tensors, on the CPU or CUDA.

Prices and features lie in memory as tensors; a step is a fixed number of tensor operations whatever the number of accounts,
reads nothing on the host, and returns the next state instead of changing one. Needs torch alone. For the same starts and
actions positions, equity and observations equal the single env's to the last bit in eager mode on the CPU; log rewards are
within 4 units in the last place, since torch's logarithm is not the C library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from rlbench.batch import Layout
from rlbench.envs import checks
from rlbench.envs.batch import BatchStep
from rlbench.envs.batch_account import interest, rebalance, tariff
from rlbench.envs.batch_market import market_tensors
from rlbench.envs.portfolio import FLOOR
from rlbench.random import Purpose, random_bits

if TYPE_CHECKING:
    from rlbench.market import Market


class TradingState(NamedTuple):
    """N accounts in the middle of their episodes; all (N,)."""

    ticker: Tensor  # int64: index of the market
    bar: Tensor  # int64, counted through all markets
    end: Tensor  # int64: the bar at which the episode is truncated
    cash: Tensor  # float64
    shares: Tensor  # float64
    equity: Tensor  # float64
    entry_equity: Tensor  # float64: just after the last fill
    held: Tensor  # int64: index of the position held, -1 before the first choice where the set has no flat
    position: Tensor  # float64
    episode: Tensor  # int64: how many episodes this account has begun, less one


class BatchTrading:
    """Rules and data of N accounts; it holds no state.

    Account i trades market i modulo K of the K given. Its e-th episode starts at a bar that depends on (seed, e, i) alone.
    An account whose episode has ended is restarted in the same step. Arguments are those of `TradingEnv`, but that
    rewards are log returns.

    Raises:
        ValueError: naming the argument, what was found, and what is accepted.
    """

    def __init__(
        self,
        market: Market | Sequence[Market],
        num_envs: int = 1024,
        device: str | torch.device = "cpu",
        positions: Sequence[float] = (-1, 0, 1),
        fee: float = 1e-4,
        borrow_rate: float = 0.0,
        slippage: float = 0.0,
        window: int = 1,
        episode_length: int | None = 256,
        random_start: bool = True,
        initial_equity: float = 1.0,
        observation_clip: float = 10.0,
        seed: int = 0,
    ) -> None:
        checks.check_choice("random_start", random_start, (True, False))
        self.device = torch.device(device)
        self.num_envs = checks.checked_count("num_envs", num_envs, most=2**31 - 1, why="accounts")
        self.positions = checks.checked_positions(positions)
        rates = [
            checks.checked_rate(name, rate)
            for name, rate in (("fee", fee), ("slippage", slippage), ("borrow_rate", borrow_rate))
        ]
        self.costs = tariff(self.positions, *rates, self.device)
        self.clip = checks.checked_positive("observation_clip", observation_clip)
        markets = list(market) if isinstance(market, Sequence) else [market]
        if not markets:
            raise ValueError("market=[] is refused; accepted: a market or a sequence of one or more.")
        self.data = market_tensors(markets, window, episode_length, self.clip, self.device)
        self.window, self.episode_length, self.random_start = window, episode_length, random_start
        self.initial_equity = checks.checked_positive("initial_equity", initial_equity)
        self.floor = FLOOR * self.initial_equity
        self.seed = seed
        self.name = f"BatchTrading({len(markets)} tickers)" if len(markets) > 1 else "BatchTrading"
        self.layout = Layout(window, self.data.features.shape[1], own=2)
        self.obs_size, self.num_actions = window * self.layout.features + 2, len(self.positions)  # D, A
        self._index = torch.arange(self.num_envs, device=self.device)
        self._back = torch.arange(
            1 - window, 1, device=self.device
        )  # (W,) from the oldest bar of a window to the newest
        self.flat = self.positions.index(0.0) if 0.0 in self.positions else -1

    def reset(self, start: Tensor | None = None) -> tuple[TradingState, Tensor]:
        """All accounts at the start of their first episode, and their observations (N, D).

        `start` (N,) int64 chooses the first bars, counted within each account's own market.
        """
        ticker = self._index % len(self.data.last_bar)
        episode = torch.zeros_like(ticker)
        bar = self._start(ticker, episode) if start is None else self._checked(start, ticker)
        state = self._begin(ticker, bar, episode)
        return state, self.observe(state)

    def step(self, state: TradingState, action: Tensor) -> tuple[TradingState, BatchStep]:
        """Fill `action` (N,) int64, indices into `positions`, at this close and go on to the next one.

        An action out of range is an error of the gather on the CPU, and on CUDA of the device.
        """
        moved, reward, terminated = self._advance(state, action)
        truncated = ~terminated & (moved.bar == moved.end)
        next_obs = self.observe(moved)
        ended = terminated | truncated
        episode = moved.episode + ended
        fresh = self._begin(moved.ticker, self._start(moved.ticker, episode), episode)
        state = TradingState(*(torch.where(ended, new, old) for new, old in zip(fresh, moved, strict=True)))
        obs = torch.where(ended[:, None], self.observe(fresh), next_obs)
        return state, BatchStep(obs, reward, terminated, truncated, next_obs)

    def _advance(self, state: TradingState, action: Tensor) -> tuple[TradingState, Tensor, Tensor]:
        """One bar on: the moved accounts, their log returns, and which of them are ruined."""
        filled = action != state.held
        before = self.data.close[state.bar]
        cash, shares = rebalance(state.cash, state.shares, before, action, self.costs)
        cash, shares = torch.where(filled, cash, state.cash), torch.where(filled, shares, state.shares)
        position = torch.where(filled, self.costs.position[action], state.position)
        entry = torch.where(filled, cash + shares * before, state.entry_equity)
        bar = state.bar + 1
        close = self.data.close[bar]
        if self.costs.borrow_rate:
            cash = cash - interest(cash, shares, close, self.costs.borrow_rate)
        equity = cash + shares * close
        ruined = equity <= self.floor
        equity = torch.where(ruined, self.floor, equity)
        moved = TradingState(
            state.ticker,
            bar,
            state.end,
            torch.where(ruined, self.floor, cash),
            torch.where(ruined, 0.0, shares),
            equity,
            entry,
            action,
            torch.where(ruined, 0.0, position),
            state.episode,
        )
        return moved, torch.log(equity / state.equity), ruined

    def observe(self, state: TradingState) -> Tensor:
        """Observations (N, D) float32: windows of features, position, unrealised profit."""
        rows = state.bar[:, None] + self._back  # (N, W)
        windows = self.data.features[rows].flatten(1)  # (N, W * F)
        profit = torch.where(state.entry_equity > 0.0, state.equity / state.entry_equity - 1.0, -1.0)
        own = torch.stack((state.position, profit.clamp(-self.clip, self.clip)), 1).to(torch.float32)  # (N, 2)
        return torch.cat((windows, own), 1)

    def _begin(self, ticker: Tensor, bar: Tensor, episode: Tensor) -> TradingState:
        last = self.data.last_bar[ticker]
        end = last if self.episode_length is None else bar + self.episode_length
        money = torch.full_like(bar, self.initial_equity, dtype=torch.float64)
        nothing = torch.zeros_like(money)
        held = torch.full_like(bar, self.flat)
        return TradingState(ticker, bar, end, money, nothing, money, money, held, nothing, episode)

    def _start(self, ticker: Tensor, episode: Tensor) -> Tensor:
        first = self.data.first_start[ticker]
        if not self.random_start:
            return first
        bits = random_bits(self.seed, Purpose.RESET, episode, self._index)
        return first + ((bits * self.data.num_starts[ticker]) >> 32)

    def _checked(self, start: Tensor, ticker: Tensor) -> Tensor:
        first = self.data.first_start[ticker]
        offset = start.to(self.device, torch.int64) - (self.window - 1)
        if start.shape != ticker.shape or bool(((offset < 0) | (offset >= self.data.num_starts[ticker])).any()):
            raise ValueError(
                f"start={start.tolist()[:8]}… is refused; accepted: ({self.num_envs},) bars from {self.window - 1} on that "
                "leave an episode before the end of the account's market."
            )
        return first + offset
