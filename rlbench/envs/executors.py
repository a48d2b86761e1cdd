"""How the environments of a trainer are stepped: a function for each way, from an `EnvSource` to a collector.

Where an environment's starts can be hashed, episode e of environment i is the same in all of them.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
import torch

from rlbench.batch import Collected
from rlbench.envs.batched import BatchCollector
from rlbench.envs.importable import pickled
from rlbench.envs.make import is_single
from rlbench.envs.one_by_one import OneByOne
from rlbench.envs.source import EnvSource
from rlbench.envs.spaces import EnvError, EnvSpec
from rlbench.envs.vector import VectorCollector
from rlbench.machine import describe


class Collector(Protocol):
    """What steps N environments, with their ends and resets, and says where to act next."""

    name: str
    num_envs: int
    spec: EnvSpec
    obs: np.ndarray  # (N, D) float32
    mask: np.ndarray | None  # (N, A) bool
    masked: bool
    finished: list[tuple[float, int]]  # (return, length) of episodes that ended in the last step

    def step(self, actions: np.ndarray) -> Collected: ...

    def close(self) -> None: ...


def one_by_one(source: EnvSource, num_envs: int, seed: int, device: str | torch.device = "cpu") -> OneByOne:
    """Python loop over single environments, one that ends being reset at once."""
    return OneByOne(_singles(source, num_envs, seed), seed)


def sync(source: EnvSource, num_envs: int, seed: int, device: str | torch.device = "cpu") -> VectorCollector:
    """Gymnasium's SyncVectorEnv. Its DISABLED autoreset mode loses no last observation, whatever an environment overwrites."""
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    envs = _singles(source, num_envs, seed)
    factories = [lambda env=env: env for env in envs]
    made = SyncVectorEnv(factories, copy=False, autoreset_mode=AutoresetMode.DISABLED)  # the collector copies
    return _vector(made, source, seed)


def in_processes(source: EnvSource, num_envs: int, seed: int, device: str | torch.device = "cpu") -> VectorCollector:
    """Gymnasium's AsyncVectorEnv: an environment a process, spawned. It pays where a step costs more than a message."""
    from rlbench.envs.workers import InProcess, Workers

    _tell_of_cores(num_envs)
    code, hashed = pickled(_factory(source), source.name), source.trading is not None or source.batch is not None
    made = Workers([InProcess(code, seed, i, hashed) for i in range(num_envs)], source.name)
    try:
        return _vector(made, source, seed)
    except BaseException:
        made.close(terminate=True)
        raise


@cache
def _tell_of_cores(processes: int) -> None:
    cores = max(1, math.floor(describe(steal_interval_s=0).usable_cores))
    if processes > cores:
        print(
            f"rlbench: {processes} environments in processes on {cores} core(s): so many run at once.", file=sys.stderr
        )


def batched(source: EnvSource, num_envs: int, seed: int, device: str | torch.device = "cpu") -> BatchCollector:
    """All environments as tensors, a fixed number of operations a step whatever their number."""
    return _named(BatchCollector(_batch(source, num_envs, seed, device)), source)


def native(source: EnvSource, num_envs: int, seed: int, device: str | torch.device = "cpu") -> Collector:
    """All environments in one C call."""
    from rlbench.envs.native_env import NativeCollector

    return _named(NativeCollector(_batch(source, num_envs, seed, device)), source)


EXECUTORS: dict[str, Callable[..., Collector]] = {
    "one_by_one": one_by_one,
    "sync": sync,
    "async": in_processes,
    "batched": batched,
    "native": native,
}


def given_vector(source: EnvSource, num_envs: int, seed: int) -> VectorCollector:
    """A vector env as the reader made it."""
    envs = source.given
    if num_envs not in (1, envs.num_envs):
        raise EnvError(f"num_envs={num_envs}, but the vector env has {envs.num_envs}: leave num_envs out.")
    return VectorCollector(envs, seed)


@dataclasses.dataclass(frozen=True)
class SlowTrading:
    """Trading envs that compute their features at every step, or read their prices at every reset from a file, or both."""

    arguments: dict[str, Any] = dataclasses.field(repr=False)
    per_step: bool
    file: Any  # a `PriceFile`, or None where the market stays in memory

    def __call__(self) -> Any:
        from rlbench.envs.per_step_features import PerStepFeatures
        from rlbench.envs.read_each_episode import ReadAndComputePerStep, ReadEachEpisode

        if self.file is None:
            return PerStepFeatures(**self.arguments)
        kind = ReadAndComputePerStep if self.per_step else ReadEachEpisode
        return kind(self.file, **self.arguments)


def prepare_source(source: EnvSource, features: str = "table", market_io: str = "in_memory") -> EnvSource:
    """The source whose single environments take features and prices as these slots' variants say.

    A source of anything but a trading env is handed back as it is.
    """
    per_step, reads = features == "per_step", market_io == "read_each_episode"
    if source.trading is None or not (per_step or reads):
        return source
    from rlbench.envs.read_each_episode import PriceFile

    file = PriceFile(source.trading["market"]) if reads else None
    make = SlowTrading(source.trading, per_step, file)
    return dataclasses.replace(source, given=make, make=make)


def started(env: Any, seed: int, index: int) -> Any:
    """An environment with hashed starts where it can have them, else as it is."""
    from rlbench.envs.starts import HashedStarts, can_hash_starts

    return HashedStarts(env, seed, index) if can_hash_starts(env) else env


def _singles(source: EnvSource, count: int, seed: int) -> list[Any]:
    """`count` environments, each its own; one that the reader made is used itself where one is enough."""
    given, make = source.given, _factory(source)
    envs = [given] if count == 1 and is_single(given) else [make() for _ in range(count)]
    for made in envs:
        if not is_single(made) or not hasattr(made, "action_space"):
            raise EnvError(f"the factory {given!r} gave {made!r}, which is no environment: return a gymnasium.Env.")
    if len({id(made) for made in envs}) < count:
        raise EnvError(f"the factory {given!r} gave the same environment twice: make a new one at every call.")
    return [started(env, seed, i) for i, env in enumerate(envs)]


def _factory(source: EnvSource) -> Callable[[], Any]:
    if source.make is None:
        raise EnvError(f"{source.name} is a batch env with no single ones: step it batched or native.")
    return source.make


def _vector(envs: Any, source: EnvSource, seed: int) -> VectorCollector:
    envs.layout = source.layout
    return VectorCollector(envs, seed, source.name)


def _named(collector: Any, source: EnvSource) -> Any:
    """A collector that goes by the name of its environment, whoever steps it."""
    collector.name, collector.spec = source.name, collector.spec._replace(name=source.name)
    return collector


def _batch(source: EnvSource, num_envs: int, seed: int, device: str | torch.device) -> Any:
    if source.batch is None:
        raise EnvError(f"{source.name} has no batched counterpart: step it one_by_one, sync or async.")
    return source.batch(num_envs, seed, device)
