"""From which batch and width on is an update faster on the GPU?

One update as `devices.sweep` times it (sample, transfer, forward, backward, optimizer) under plain's Choices on both, but on
an environment that needs torch alone. The CPU gets one thread or all its cores, whichever is faster for that batch and width.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from rlbench.config import DQNConfig
from rlbench.gpu_check.check import NOT_REACHED, Check
from rlbench.gpu_check.trainer import cart_pole_trainer
from rlbench.measure import NO_CUDA
from rlbench.results import Row
from rlbench.speedups import Choices
from rlbench.speedups.replay import random_transitions
from rlbench.timing import BASELINE, Paired, time_paired

BATCH_SIZES, WIDTHS = (32, 128, 512, 2048, 8192), (64, 256, 1024)
REPLAY_ROWS = 10_000
ROUNDS, QUICK_ROUNDS, ROUND_S = 7, 1, 0.005


def crossover(check: Check) -> Iterator[Row]:
    """A row for each batch size and width, from the smallest to the largest product of both."""
    cells = [(b, w) for b in BATCH_SIZES for w in WIDTHS]
    for batch_size, width in sorted(cells, key=lambda cell: cell[0] * cell[1] ** 2)[: 1 if check.quick else None]:
        name = f"batch {batch_size:,}, width {width:,}"
        fields: dict[str, Any] = {"batch_size": batch_size, "hidden": width}
        if check.over():
            yield check.absent(name, NOT_REACHED, **fields)
            continue
        check.note(name)
        try:
            yield check.row(name, **fields, **_timed(check, batch_size, width))
        except Exception as error:  # out of memory at one size does not take the others with it
            yield check.failed(name, error, **fields)


def _timed(check: Check, batch_size: int, width: int) -> dict[str, Any]:
    before, cores = torch.get_num_threads(), max(1, math.floor(check.machine.usable_cores))
    on_cpu = one_update(batch_size, width, "cpu", check.seed)
    variants = {"gpu": one_update(batch_size, width, str(check.device), check.seed)} if check.cuda else {}
    try:
        threads = best_threads(on_cpu, cores)
        paired = time_paired(
            with_threads(threads, on_cpu),
            variants,
            rounds=QUICK_ROUNDS if check.quick else ROUNDS,
            min_round_s=ROUND_S,
            device=check.device,
            seed=check.seed,
            should_stop=check.over,
        )
    finally:
        torch.set_num_threads(before)
    return {"cpu_threads": threads, **numbers(paired)}


def best_threads(call: Callable[[], object], cores: int, now: Callable[[], float] = time.perf_counter) -> int:
    """One thread, or all cores where the best of three calls is faster on them."""

    def best(threads: int) -> float:
        run, times = with_threads(threads, call), []
        run()
        for _ in range(3):
            start = now()
            run()
            times.append(now() - start)
        return min(times)

    return cores if cores > 1 and best(cores) < best(1) else 1


def numbers(paired: Paired) -> dict[str, Any]:
    """The CPU's and the GPU's microseconds an update, and the ratio of the one to the other."""
    if not paired.rounds:
        return {"verdict": "not measured", "not_measured": NOT_REACHED}
    found: dict[str, Any] = {"cpu_us": paired.median_s(BASELINE) * 1e6, "gpu_us": None, "rounds": paired.rounds}
    if "gpu" not in paired.names:
        return {**found, "verdict": "not measured", "not_measured": NO_CUDA}
    return {**found, "gpu_us": paired.median_s("gpu") * 1e6, **paired.ratio("gpu").fields()}


def with_threads(count: int, call: Callable[[], object]) -> Callable[[], object]:
    """The call on that many torch threads."""

    def run() -> object:
        torch.set_num_threads(count)
        return call()

    return run


def one_update(batch_size: int, width: int, device: str, seed: int) -> Callable[[], object]:
    """A call that samples a minibatch, brings it to the device and takes one step of Adam, as plain does."""
    config = DQNConfig(
        num_envs=1, batch_size=batch_size, hidden=(width, width), buffer_size=REPLAY_ROWS, eval_episodes=0, seed=seed
    )
    agent = cart_pole_trainer(config, Choices.plain(device), device)
    agent.replay.add(random_transitions(REPLAY_ROWS, agent.spec, seed))
    return lambda: agent.update(agent.sample())
