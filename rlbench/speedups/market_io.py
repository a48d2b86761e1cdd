"""Market input: when prices are read from their file.

A file that is read at every reset costs parsing, checks and features each time, whatever the episode's length; in memory an
episode is an offset into arrays (claim A16). The longer the episodes, the less it matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rlbench.envs.executors import Collector, one_by_one, prepare_source
from rlbench.envs.source import EnvSource
from rlbench.speedups import features
from rlbench.speedups.environments import Steps, check
from rlbench.speedups.speedup import Speedup

STEPS = 2 * features.EPISODE


def read_each_episode(source: EnvSource, num_envs: int, seed: int, device: str) -> Collector:
    """Prices read from a CSV file, and features built from them, at every reset."""
    return one_by_one(prepare_source(source, market_io="read_each_episode"), num_envs, seed, device)


def in_memory(source: EnvSource, num_envs: int, seed: int, device: str) -> Collector:
    """Prices and features read once."""
    return one_by_one(source, num_envs, seed, device)


VARIANTS = {"read_each_episode": read_each_episode, "in_memory": in_memory}


def bind(variant: Callable[..., Collector], inputs: tuple[EnvSource, str, int]) -> Callable[[], Steps]:
    """The call takes two short episodes of random actions in one account."""
    return features.bind(variant, inputs, STEPS, accounts=1)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if env is not None and env.trading is None:
        return f"{env.name} is not rlbench's trading env, whose prices this is about; leave this slot out"
    if variant == "in_memory":
        return None
    if choices is not None and choices.environments in features.ON_DEVICE:
        return f"environments={choices.environments!r} keeps its prices on the device; accepted here: in_memory"
    return None if env is None else features.why_not_from_prices(env, "in_memory")


SPEEDUP = Speedup(
    name="market_io",
    question="When are the prices read?",
    summary="Once, instead of at every episode. Matters where episodes are short and files long.",
    variants=VARIANTS,
    make_inputs=features.make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(250, 2000),
    size_means="bars in the file",
    workloads=("dqn", "ppo"),
    claims=("A16",),
)
