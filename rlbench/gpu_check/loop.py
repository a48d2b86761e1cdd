"""Env steps a second of the fused loop, over the number of environments, beside the CPU's fastest loop.

Everything lies on the device: environments, replay, network. One update of BATCH_SIZE rows is done an iteration, that is a step
of all environments, on both devices. A stretch goes from one log point to a later one; stretches of the GPU and of the CPU
alternate, and the CPU's are timed twice (A/A). Compilation and warm-up are over before the first one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from rlbench.config import DQNConfig
from rlbench.gpu_check.check import NOT_REACHED, Check
from rlbench.gpu_check.trainer import cart_pole_trainer
from rlbench.measure import NO_CUDA
from rlbench.results import Row
from rlbench.speedups import ChoiceError, Choices
from rlbench.timing import compare

# The ends first, then between them, so that a section cut short has seen the whole range.
NUM_ENVS, QUICK_NUM_ENVS = (1, 65_536, 1_024, 16, 4_096, 64, 16_384, 256, 4), (1, 16)
BATCH_SIZE, HIDDEN = 128, (120, 84)
ROUNDS, QUICK_ROUNDS = 5, 1
MOST_ITERATIONS, CPU_ENV_STEPS = 512, 131_072  # between two log points
STRETCH_S = 0.1
FOR_EVER = 10**9  # env steps: `stop` ends a training


def config_of(num_envs: int, iterations: int, seed: int) -> DQNConfig:
    """One update an iteration, a log point every `iterations`."""
    return DQNConfig(
        total_timesteps=FOR_EVER,
        num_envs=num_envs,
        batch_size=BATCH_SIZE,
        hidden=HIDDEN,
        train_frequency=num_envs,
        target_network_frequency=50 * num_envs,
        learning_starts=max(BATCH_SIZE, num_envs),
        buffer_size=max(100_000, 4 * num_envs),
        log_frequency=iterations * num_envs,
        eval_episodes=0,
        seed=seed,
    )


def choices_of(device: torch.device) -> Choices:
    """fast(), on CUDA with the fused loop."""
    return Choices.fast(device).replace(loop="fused") if device.type == "cuda" else Choices.fast(device)


class Stretches:
    """A training that is gone on with, a stretch at a time."""

    agent: Any
    least_s: float

    def stretch(self) -> float:
        """Seconds an env step, from the next log point to one that is STRETCH_S or more behind it."""
        marks: list[tuple[int, float]] = []

        def on_log(state: dict[str, Any]) -> None:
            marks.append((state["step"], time.perf_counter()))
            if len(marks) > 1 and marks[-1][1] - marks[0][1] >= self.least_s:
                self.agent.stop()

        self.agent.train(progress=False, on_log=on_log)
        (step, start), (last, end) = marks[0], marks[-1]
        return (end - start) / (last - step)


class Runner(Stretches):
    """A DQN on poles."""

    def __init__(
        self,
        num_envs: int,
        device: torch.device,
        quick: bool,
        seed: int,
        choices: Choices | None = None,
        iterations: int | None = None,
    ) -> None:
        config = config_of(num_envs, iterations or iterations_of(num_envs, device, quick), seed)
        self.least_s = 0.0 if quick else STRETCH_S
        self.agent = cart_pole_trainer(config, choices or choices_of(device), device)


def iterations_of(num_envs: int, device: torch.device, quick: bool) -> int:
    """Between two log points: many, since a log point waits for the device, but on the CPU no more than it does in a second."""
    if quick:
        return 16
    return MOST_ITERATIONS if device.type == "cuda" else min(MOST_ITERATIONS, max(1, CPU_ENV_STEPS // num_envs))


def fused_loop(check: Check) -> Iterator[Row]:
    """A row for each number of environments."""
    for num_envs in QUICK_NUM_ENVS if check.quick else NUM_ENVS:
        name = f"{num_envs:,} envs"
        fields: dict[str, Any] = {"num_envs": num_envs, "batch_size": BATCH_SIZE, "hidden": list(HIDDEN)}
        if check.over():
            yield check.absent(name, NOT_REACHED, **fields)
            continue
        check.note(name)
        try:
            yield check.row(name, **fields, **_timed(check, num_envs))
        except ChoiceError as error:
            yield check.absent(name, str(error), **fields)
        except Exception as error:  # out of memory at one size does not take the others with it
            yield check.failed(name, error, **fields)


def _timed(check: Check, num_envs: int) -> dict[str, Any]:
    places = [torch.device("cpu"), *([check.device] if check.cuda else [])]
    runners = [Runner(num_envs, place, check.quick, check.seed) for place in places]
    starts = time.perf_counter()
    for runner in runners:
        runner.stretch()
    first_s = time.perf_counter() - starts
    rounds = alternating(check, [runner.stretch for runner in runners])
    loops = {
        f"{place.type}_loop": getattr(r.agent.choices, "loop", None) for place, r in zip(places, runners, strict=True)
    }
    return {**numbers(rounds, check.cuda), **loops, "first_s": first_s}


def alternating(check: Check, calls: list[Callable[[], float]]) -> np.ndarray:
    """What the calls give, the first of them called twice, in rounds of random order. # (rounds, calls + 1)"""
    calls = [*calls, calls[0]]
    order, rounds = np.random.default_rng(check.seed), []
    for _ in range(QUICK_ROUNDS if check.quick else ROUNDS):
        if rounds and check.over():
            break
        times = [0.0] * len(calls)
        for which in order.permutation(len(calls)):
            times[which] = calls[which]()
        rounds.append(times)
    return np.array(rounds)


def numbers(seconds: np.ndarray, cuda: bool) -> dict[str, Any]:
    """From seconds an env step, columns CPU, GPU (with `cuda`), CPU again. # (rounds, 2 or 3)"""
    cpu = float(np.median(seconds[:, 0]))
    found: dict[str, Any] = {"cpu_sps": 1 / cpu, "rounds": len(seconds), "cpu_times": seconds[:, 0].tolist()}
    if not cuda:
        return {**found, "gpu_sps": None, "verdict": "not measured", "not_measured": NO_CUDA}
    ratio = compare(seconds[:, 0], seconds[:, 1], seconds[:, -1])
    return {
        **found,
        "gpu_sps": 1 / float(np.median(seconds[:, 1])),
        "gpu_times": seconds[:, 1].tolist(),
        **ratio.fields(),
    }
