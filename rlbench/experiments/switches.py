"""Switches that people turn on and that may cost more than they bring: more torch threads, envs in processes of their own.

rlbench starts no worker processes by itself. Here as many run as are asked for, each with one torch thread, and a row says how
many fit on the cores (`fitting_workers`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from rlbench.config import DQNConfig
from rlbench.experiments.devices import one_update
from rlbench.experiments.ratios import no_ratio, ratio_fields
from rlbench.machine import StealMeter, describe
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.timing import time_paired
from rlbench.trainers.dqn import DQN


def fitting_workers(wanted: int, usable_cores: float, threads: int = 1) -> int:
    """How many worker processes of `threads` torch threads each fit on the cores: at least 1, at most `wanted`."""
    return max(1, min(wanted, math.floor(usable_cores) // max(1, threads)))


def threads(
    batch_sizes: Sequence[int] = (32, 4096),
    *,
    hidden: int = 128,
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """One update on the CPU with all usable cores against one thread, a row for each batch size."""
    machine, before = describe(steal_interval_s=0), torch.get_num_threads()
    cores = max(1, math.floor(machine.usable_cores))
    rows = []
    try:
        with Progress(rounds * len(batch_sizes), "threads", "rounds", progress) as bar:
            for batch_size in batch_sizes:
                meter = StealMeter()
                variants = {"all": _with_threads(cores, one_update(batch_size, hidden, seed=seed))} if cores > 1 else {}
                paired = time_paired(
                    _with_threads(1, one_update(batch_size, hidden, seed=seed)),
                    variants,
                    rounds=rounds,
                    min_round_s=0.005 if quick else 0.02,
                    seed=seed,
                    progress=lambda done, total: bar.advance(1),
                )
                numbers = ratio_fields(paired, "all") if variants else no_ratio(paired, "this machine has one core")
                fields: dict[str, Any] = {
                    "switch": f"{cores} torch threads",
                    "against": "1 torch thread",
                    "batch_size": batch_size,
                }
                label = f"{cores} threads, batch {batch_size}"
                fields |= {"hidden": hidden, "label": label, "quick": quick, **numbers}
                rows.append(new_row("switch", seeds=[seed], machine=machine, meter=meter, **fields))
    finally:
        torch.set_num_threads(before)
    return rows


def _with_threads(count: int, call: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        torch.set_num_threads(count)
        return call()

    return run


def vector_envs(
    workers: Sequence[int] = (2, 8),
    *,
    env: str = "CartPole-v1",
    train_steps: int = 2_000,
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """Gymnasium's AsyncVectorEnv (a process an env) against its SyncVectorEnv, a row for each number of envs.

    A call is one step of all envs. Beside the ratio stand the returns after `train_steps` env steps of DQN under both, and
    `same_weights`: whether the two trainings ended with equal weights, bit for bit.
    """
    machine = describe(steal_interval_s=0)
    rows = []
    with Progress(rounds * len(workers), "vector envs", "rounds", progress) as bar:
        for count in workers:
            meter = StealMeter()
            with _both(env, count) as (sync, parallel):
                actions = np.zeros(count, np.int64)
                paired = time_paired(
                    lambda sync=sync, actions=actions: sync.step(actions),
                    {"async": lambda parallel=parallel, actions=actions: parallel.step(actions)},
                    rounds=rounds,
                    min_round_s=0.005 if quick else 0.02,
                    seed=seed,
                    progress=lambda done, total: bar.advance(1),
                )
                learnt = _learning(sync, parallel, train_steps, seed)
            fields: dict[str, Any] = {
                "switch": f"{count} envs in processes",
                "against": f"{count} envs in this process",
                "label": f"{count} async workers",
                "workers": count,
                "fitting_workers": fitting_workers(count, machine.usable_cores),
                "env": env,
                "train_steps": train_steps,
                "quick": quick,
            }
            fields |= {**learnt, **ratio_fields(paired, "async")}
            rows.append(new_row("switch", seeds=[seed], machine=machine, meter=meter, **fields))
    return rows


@contextmanager
def _both(env: str, count: int) -> Iterator[tuple[Any, Any]]:
    """A sync and an async vector env, reset; workers are spawned with one thread each and gone afterwards."""
    import gymnasium
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

    factories = [partial(gymnasium.make, env)] * count
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the children as they start
    try:
        parallel = AsyncVectorEnv(factories, context="spawn")
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
    sync = SyncVectorEnv(factories)
    try:
        for each in (sync, parallel):
            each.reset(seed=0)
        yield sync, parallel
    finally:
        parallel.close(terminate=True)
        sync.close()


def _learning(sync: Any, parallel: Any, steps: int, seed: int) -> dict[str, object]:
    """Returns and weights after the same env steps under both."""
    import gymnasium

    config = DQNConfig(total_timesteps=steps, learning_starts=min(500, steps // 2), eval_episodes=10, seed=seed)
    config = config.replace(num_envs=sync.num_envs, learning_rate=1e-3, train_frequency=4)
    name = sync.envs[0].spec.id
    histories = [
        DQN(config, env=each, eval_env=partial(gymnasium.make, name)).train(progress=False) for each in (sync, parallel)
    ]
    return {
        "return_against": histories[0].mean_return,
        "return_switch": histories[1].mean_return,
        "same_weights": histories[0].weights_sha256 == histories[1].weights_sha256,
    }
