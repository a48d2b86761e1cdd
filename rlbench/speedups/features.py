"""Features: when a trading env computes what it shows of the market.

Features of past bars never change. Computed at every step, which is how such an env is often written, they cost a pass over the
history each time, the longer the later in it; computed once into a table they cost a copy of a row (claim A15). A table on the
device saves the trip there, too, and is read by all accounts of a batched env at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rlbench import simulate
from rlbench.envs.executors import Collector, batched, one_by_one, prepare_source
from rlbench.envs.factories import TradingFactory
from rlbench.envs.source import EnvSource, env_source
from rlbench.speedups.environments import Steps, check, random_steps
from rlbench.speedups.speedup import Speedup

STEPS, ACCOUNTS, EPISODE = 16, 4, 12
ON_DEVICE = ("batched", "native")  # the variants of `environments` whose table is theirs


def per_step(source: EnvSource, num_envs: int, seed: int, device: str) -> Collector:
    """Features of every step computed from the bars up to it."""
    return one_by_one(prepare_source(source, features="per_step"), num_envs, seed, device)


def table(source: EnvSource, num_envs: int, seed: int, device: str) -> Collector:
    """Features of all bars computed once, kept by the env in NumPy."""
    return one_by_one(source, num_envs, seed, device)


def table_on_device(source: EnvSource, num_envs: int, seed: int, device: str) -> Collector:
    """The same table as a tensor on the device, indexed by all accounts at once."""
    return batched(source, num_envs, seed, device)


VARIANTS = {"per_step": per_step, "table": table, "table_on_device": table_on_device}


def make_inputs(size: int, seed: int, device: str) -> tuple[EnvSource, str, int]:
    """A simulated market in which an episode may start at any of `size` bars."""
    market = simulate.martingale(size + EPISODE, seed=seed)
    return env_source(TradingFactory(market, {"episode_length": EPISODE})), device, seed


def bind(
    variant: Callable[..., Collector], inputs: tuple[EnvSource, str, int], steps: int = STEPS, accounts: int = ACCOUNTS
) -> Callable[[], Steps]:
    """The call takes 16 random actions in 4 accounts."""
    source, device, seed = inputs
    return random_steps(variant(source, accounts, seed, device), steps, seed)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if env is not None and env.trading is None:
        return f"{env.name} is not rlbench's trading env, whose features this is about; leave this slot out"
    executor = None if choices is None else choices.environments
    if variant == "table_on_device":
        if env is not None and env.batch is None:
            return f"{env.name} with reward= has no batched counterpart; accepted here: per_step, table"
        if executor is not None and executor not in ON_DEVICE:
            return (
                f"environments={executor!r} steps single envs with tables of their own; accepted here: per_step, table"
            )
        return None
    if executor in ON_DEVICE:
        return f"environments={executor!r} keeps its table on the device; accepted here: table_on_device"
    return None if variant == "table" or env is None else why_not_from_prices(env, "table")


def why_not_from_prices(env: EnvSource, accepted: str) -> str | None:
    """The reason why the features of a trading env cannot be computed again from its prices, or None."""
    from rlbench.envs.per_step_features import why_not_again  # needs Gymnasium

    reason = why_not_again(env.trading["market"])
    return f"{reason}; accepted here: {accepted}" if reason else None


SPEEDUP = Speedup(
    name="features",
    question="When are the features of a market computed?",
    summary="Once, into a table, instead of at every step. Matters the more the longer the history and the dearer the features.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(250, 2000),
    size_means="bars of history",
    workloads=("dqn", "ppo"),
    claims=("A15",),
)
