"""Loop: who runs the iteration of collecting, storing, sampling, updating and syncing the target.

`python` is the loop as one reads it: a few calls an iteration, NumPy at the border to any env. What it costs is Python and
the calls themselves, some tens of microseconds an env step, which on a small network is most of the time. `tensors` writes
the iteration as one pure function of tensors on the device, where the env is tensors too, so that nothing is read on the host
between two log points (claim A2). `fused` puts several such iterations into one compiled call, on CUDA into one captured
graph. `native` runs them in one C call on the CPU (claim B20). The last three need an env that has a batched counterpart.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from rlbench.compile import why_not
from rlbench.config import DQNConfig
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.native.build import BuildError, load
from rlbench.native.dqn import why_no_network
from rlbench.native.envs import why_not_native
from rlbench.speedups.speedup import Speedup

ITERATIONS = 64  # a call of a measurement
MOST_UNROLLED = 24  # collections and updates in a compiled call: each adds seconds to its compilation


def period_of(config: DQNConfig, num_envs: int) -> tuple[int, ...]:
    """Rounds of updates in each of the iterations after which they repeat; () where these are too many to be unrolled."""
    steps = math.lcm(num_envs, config.train_frequency)
    iterations, rounds = steps // num_envs, steps // config.train_frequency
    if iterations + rounds * config.gradient_steps > MOST_UNROLLED:
        return ()
    points = [k * num_envs // config.train_frequency for k in range(iterations + 1)]
    return tuple(after - before for before, after in pairwise(points))


def python(trainer: Any) -> Any:
    """One iteration at a time, as `DQN.advance` has it."""
    return trainer


def native(trainer: Any) -> Any:
    from rlbench.trainers.native_loop import NativeLoop  # a loop works on a trainer: measured here, written there

    return NativeLoop(trainer)


def tensors(trainer: Any) -> Any:
    from rlbench.trainers.tensor_loop import TensorLoop

    return TensorLoop(trainer)


def fused(trainer: Any) -> Any:
    from rlbench.trainers.fused_loop import FusedLoop

    return FusedLoop(trainer)


VARIANTS = {"python": python, "tensors": tensors, "fused": fused, "native": native}
ON_TENSORS = {"replay": "ring_torch", "metrics": "on_device"}
WORKS_WITH = {"python": {}, "tensors": ON_TENSORS, "fused": ON_TENSORS, "native": {**ON_TENSORS, "update": "native"}}


class NoLog:
    """A log that wants nothing but a number of env steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def room(self) -> int:
        return self.steps

    def episodes(self, finished: list) -> None:
        pass

    episodes_at = episodes


def make_inputs(size: int, seed: int, device: str) -> tuple[DQNConfig, str]:
    """Settings with `size` envs on CartPole, and an update every ten env steps, with more envs in every iteration."""
    config = DQNConfig(num_envs=size, learning_starts=8 * size, batch_size=32, hidden=(64, 64), seed=seed)
    config = config.replace(
        train_frequency=max(10, size), target_network_frequency=20 * size, n_step=2, exploration_fraction=0.0, end_e=0.5
    )
    return config.replace(eval_episodes=0, total_timesteps=10**9), device


def bind(variant: Callable[..., Any], inputs: tuple[DQNConfig, str]) -> Callable[[], list[Tensor]]:
    """The call runs 64 iterations and hands out rows of replay and parameters."""
    from rlbench.speedups.choices import Choices
    from rlbench.trainers.dqn import DQN

    config, device = inputs
    name = next(name for name, value in VARIANTS.items() if value is variant)
    choices = Choices(loop=name, replay="ring_torch") if name == "python" else Choices(loop=name)
    bare = importlib.util.find_spec("gymnasium") is None  # then the Python loop, too, steps the batched env
    env = BatchCartPole(config.num_envs, device, seed=config.seed) if bare else "CartPole-v1"
    trainer = DQN(config, choices, env, device)

    def iterations() -> list[Tensor]:
        end = trainer.env_steps + ITERATIONS * config.num_envs
        while trainer.env_steps < end:
            trainer.loop.advance(NoLog(end - trainer.env_steps))
        # Not copied, which would be timed: what a call hands out is overwritten by the next.
        return [trainer.replay.rows, *(parameter.detach() for parameter in trainer.online.parameters())]

    return iterations


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """The same rows and weights but for rounding: sines, and products that add in another order."""
    for one, other in zip(expected, actual, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant == "python":
        return None
    if env is not None and env.batch is None:
        return f"{env.name} has no batched counterpart (CartPole-v1 and the trading env have); accepted here: python"
    if config is not None and config.prioritized_replay_alpha:
        return "prioritised replay needs the errors of one update before the next sample; accepted here: python"
    if variant == "native":
        return _native_requires(config, device, env)
    return _fused_requires(config, device, env) if variant == "fused" else None


def _fused_requires(config: Any, device: torch.device, env: Any) -> str | None:
    reason = why_not(device.type)
    if reason:
        return f"{reason}; accepted here: python, tensors"
    if config is None:
        return None
    num_envs = (None if env is None else env.num_envs) or config.num_envs
    if not period_of(config, num_envs):
        return (
            f"num_envs={num_envs}, train_frequency={config.train_frequency} and gradient_steps={config.gradient_steps} "
            f"repeat only after more than {MOST_UNROLLED} collections and updates, too many for one compiled call: make one of "
            "the first two a small multiple of the other; accepted here: python, tensors"
        )
    return None


def _native_requires(config: Any, device: torch.device, env: Any) -> str | None:
    if device.type != "cpu":
        return f"native code runs on the CPU, and this runs on {device.type}; accepted here: python, tensors, fused"
    given = env.given if env is not None and env.num_envs else None  # a batch env of the reader's, or the face of one
    if given is not None and (reason := why_not_native(getattr(given, "core", given))):
        return f"{reason}; accepted here: python, tensors, fused"
    if config is not None and (reason := why_no_network(config)):
        return f"{reason}; accepted here: python, tensors, fused"
    try:
        load("dqn_loop"), load("trading", exact=True), load("cart_pole", exact=True)
    except BuildError as error:
        return f"{error}; accepted here: python, tensors, fused"
    return None


SPEEDUP = Speedup(
    name="loop",
    question="What does the Python loop itself cost?",
    summary="Whole iterations in one call instead of a few dozen calls an iteration. Matters wherever network and env are small.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(1, 10, 64),
    size_means="envs",
    loops=("python", "tensors", "fused", "native"),
    claims=("A2", "B20"),
)
