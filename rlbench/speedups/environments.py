"""Environments: how N of them are stepped.

A Python loop over single environments costs some microseconds each, whatever they do, and Gymnasium's SyncVectorEnv adds to that.
A process for each (AsyncVectorEnv, claim A8) steps them side by side, but every step waits for a message there and back, which
costs more than a cheap step does. All of them as tensors take a fixed number of operations whatever N is: slower than the loop
for a few, far faster for many. One C call has neither cost. The last two need an env that was written so: here the trading env
and CartPole-v1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlbench import simulate
from rlbench.batch import Collected
from rlbench.envs.executors import EXECUTORS, Collector
from rlbench.envs.factories import TradingFactory
from rlbench.envs.importable import why_not_importable
from rlbench.envs.source import EnvSource, env_source
from rlbench.envs.spaces import EnvError
from rlbench.native.build import BuildError
from rlbench.random import Purpose, random_bits, to_below
from rlbench.speedups.speedup import Speedup

VARIANTS = EXECUTORS
STEPS = 64  # a call of a measurement
EPISODE = 20  # steps
MOST_PROCESSES = 16  # that a measurement starts
ULPS = 4  # of a reward: torch's logarithm is not the C library's
FIELDS = ("obs", "reward", "terminated", "truncated", "next_obs")


class Steps(NamedTuple):
    """What some steps of a collector gave. Iterating stacks its fields, (K, N, ...) each, which a timed call need not do."""

    rows: list[Collected]

    def __iter__(self) -> Iterator[Tensor]:  # type: ignore[override]
        return (torch.from_numpy(np.stack([getattr(row, name) for row in self.rows])) for name in FIELDS)


def make_inputs(size: int, seed: int, device: str) -> tuple[EnvSource, int, int, str]:
    """A simulated market to be traded in `size` environments."""
    market = simulate.martingale(500, seed=seed)
    return env_source(TradingFactory(market, {"episode_length": EPISODE})), size, seed, device


def bind(variant: Callable[..., Collector], inputs: tuple[EnvSource, int, int, str]) -> Callable[[], Steps]:
    """The call takes 64 random actions in every environment."""
    source, num_envs, seed, device = inputs
    if variant is EXECUTORS["async"] and num_envs > MOST_PROCESSES:
        raise EnvError(f"async starts a process for each environment: measured up to {MOST_PROCESSES} of them.")
    return random_steps(variant(source, num_envs, seed, device), STEPS, seed)


def random_steps(collector: Collector, steps: int, seed: int) -> Callable[[], Steps]:
    """A call that takes the same random actions (steps, N) each time; the first call starts from the first episodes."""
    step, env = np.arange(steps, dtype=np.int64)[:, None], np.arange(collector.num_envs, dtype=np.int64)
    actions = to_below(random_bits(seed, Purpose.ACTION, step, env), collector.spec.num_actions)
    return lambda: Steps([collector.step(row) for row in actions])


def check(expected: Any, actual: Any) -> None:
    """Observations and flags equal, rewards within 4 units in the last place."""
    for name, one, other in zip(FIELDS, expected, actual, strict=True):
        if name == "reward":
            room = ULPS * np.spacing(np.abs(one.numpy()))  # sync: host memory
            far = np.abs(other.numpy() - one.numpy()) > room  # sync: host memory
            assert not far.any(), (
                f"{far.sum()} of {far.size} rewards differ by more than {ULPS} units in the last place"
            )
        else:
            torch.testing.assert_close(other, one, rtol=0, atol=0, msg=lambda text, name=name: f"{name}: {text}")


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if env is not None and env.game is not None:
        return f"{env.name} is a game, which the slot games steps; leave this slot out"
    if env is not None and env.vector:
        return f"{env.name} is a vector env and is stepped as it is; leave this slot out"
    if variant in ("one_by_one", "sync", "async") and env is not None and env.make is None:
        return f"{env.name} is a batch env with no single ones; accepted here: batched, native"
    if variant not in ("batched", "native") and env is not None and env.make is None:
        return f"{env.name} is a batch env and is stepped as one; accepted here: batched, native"
    if variant in ("batched", "native") and env is not None and env.batch is None:
        return (
            f"{env.name} has no batched counterpart (CartPole-v1 and the trading env have); "
            "accepted here: one_by_one, sync, async"
        )
    if variant == "native":
        if device.type != "cpu":
            return f"native code runs on the CPU, and this runs on {device.type}; accepted here: one_by_one, sync, async, batched"
        reason = _why_not_native() if env is None else why_not_native(env)
        return f"{reason}; accepted here: one_by_one, sync, async, batched" if reason else None
    return why_not_importable(env.make) if variant == "async" and env is not None else None


def why_not_native(source: EnvSource) -> str | None:
    """The reason why an environment cannot be stepped by native code here, or None."""
    try:
        EXECUTORS["native"](source, 1, 0, "cpu")
    except (TypeError, BuildError) as error:
        return str(error)
    return None


@cache
def _why_not_native() -> str | None:
    return why_not_native(make_inputs(1, 0, "cpu")[0])


SPEEDUP = Speedup(
    name="environments",
    question="What does it cost to step the environments?",
    summary="Many environments in one call instead of a Python loop, or in processes. Processes pay for an env that is slow.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(1, 8, 16),
    size_means="environments",
    workloads=("dqn", "ppo"),
    claims=("A8",),
)
