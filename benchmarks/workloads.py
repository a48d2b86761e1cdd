"""What both sides train: an env, and settings that both can follow exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from rlbench import simulate
from rlbench.config import DQNConfig
from rlbench.market import Market, real

EVAL_EPISODES = 20


@dataclass(frozen=True)
class Workload:
    """`make_env` gives a fresh env; both sides get the very same ones, but where the peer has its own."""

    name: str
    make_env: Callable[[], Any]
    config: DQNConfig
    peer_env: Callable[[], Any] | None = None  # what the peer trains on, where that is not `make_env`
    naive: bool = True  # whether naive() trains, too

    @property
    def expected_updates(self) -> int:
        """Updates that the config asks for, counted here once more and not by either trainer."""
        c = self.config
        return (c.total_timesteps // c.train_frequency - c.learning_starts // c.train_frequency) * c.gradient_steps


def cartpole() -> Any:
    import gymnasium

    return gymnasium.make("CartPole-v1")


@cache
def daily_market() -> Market:
    return real("AAPL")


@cache
def reverting_market() -> Market:
    return simulate.ornstein_uhlenbeck(20_000, seed=0)


def trading() -> Any:
    from rlbench.envs.trading import TradingEnv

    return TradingEnv(daily_market())


def gym_trading() -> Any:
    """Gym-Trading-Env on what `trading` trades."""
    from benchmarks.gym_trading import peer_like

    return peer_like(trading())


def trading_reverting() -> Any:
    from rlbench.envs.trading import TradingEnv

    return TradingEnv(reverting_market())


def settings(total_timesteps: int, **changes: Any) -> DQNConfig:
    """DQN as SB3 has it: one Q-network, Huber loss, no Double DQN. Nothing is logged or evaluated on the way."""
    common = {
        "total_timesteps": total_timesteps,
        "log_frequency": total_timesteps,
        "eval_episodes": EVAL_EPISODES,
        "double_dqn": False,
        "huber": True,
        "learning_starts": 1_000,
        "max_grad_norm": 10.0,
        "target_network_frequency": 500,
        "buffer_size": 10_000,
    }
    return DQNConfig(**{**common, **changes})


RARE = {"hidden": (120, 84), "batch_size": 128, "train_frequency": 10}
OFTEN = {"hidden": (64, 64), "batch_size": 32, "train_frequency": 1, "gamma": 0.9, "learning_rate": 5e-4}


def speed_workloads(quick: bool = False) -> list[Workload]:
    """Few steps each, for a rate: an update every 10 env steps on CartPole, one every env step on trading.

    As many steps as leave the fastest side some hundredths of a second to be timed, and the slowest a few seconds.
    """
    plans = (("CartPole", cartpole, {1: 7_000, 10: 10_000}, RARE), ("trading", trading, {1: 2_500, 10: 2_500}, OFTEN))
    short = {cartpole: 2_000, trading: 1_500}
    made = [
        Workload(f"{name}, {envs} env{'s' if envs > 1 else ''}", make_env, settings(n, num_envs=envs, **changes))
        for name, make_env, steps, changes in plans
        for envs, n in ((e, short[make_env] if quick else full) for e, full in steps.items())
    ]
    beside = settings(short[trading] if quick else 2_500, **OFTEN)
    return [*made, Workload("trading, peer on Gym-Trading-Env", trading, beside, peer_env=gym_trading, naive=False)]


def long_workloads() -> list[Workload]:
    """Long enough to learn: returns beside rates. The market reverts, so that there is something to learn."""
    pole = {"learning_rate": 1e-3, "train_frequency": 4, "exploration_fraction": 0.2, "end_e": 0.04}
    return [
        Workload("CartPole, 50,000 steps", cartpole, settings(50_000, **pole), naive=False),
        Workload("trading, 20,000 steps", trading_reverting, settings(20_000, **OFTEN), naive=False),
    ]
