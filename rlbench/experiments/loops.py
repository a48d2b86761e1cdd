"""What the Python loop costs: whole iterations under every loop, and over what makes them dear.

An iteration is a step of all environments and the updates that fall on it. The baseline is `plain()`; beside it stands the
Python loop with the parts that `fast()` has, so that what the loop itself costs can be told from what its parts do.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from rlbench.config import ConfigError, DQNConfig
from rlbench.envs.factories import Given
from rlbench.envs.source import env_source
from rlbench.experiments.light import matmul_peak, update_flops
from rlbench.experiments.ratios import no_ratio, ratio_fields
from rlbench.machine import StealMeter, describe, resolve_device
from rlbench.models import forward_flops
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import SPEEDUPS, Choices
from rlbench.speedups.loop import NoLog
from rlbench.timing import BASELINE, BASELINE_AGAIN, time_paired
from rlbench.trainers.dqn import DQN

ENV, WIDTHS = "CartPole-v1", (4, 2)  # inputs and outputs of its network
CALL = 16  # iterations in a call that is timed
PYTHON, PARTS = "python", "python, fast parts"
AXES = ("environments", "hidden width", "batch")
ALONE = "the env alone"


def settings(**changes: Any) -> DQNConfig:
    """Ten poles and an update in every iteration, with the usual network and batch."""
    own = {"num_envs": 10, "train_frequency": 10, "learning_starts": 80, "exploration_fraction": 0.0}
    return DQNConfig(**{**own, "eval_episodes": 0, "total_timesteps": 10**9, **changes})


def ways(device: str | torch.device = "cpu") -> dict[str, Choices]:
    """The Choices of each way to run an iteration, the baseline first."""
    plain, fast = Choices.plain(device), Choices.fast(device)
    loops = {name: plain.replace(loop=name) for name in SPEEDUPS["loop"].variants if name != PYTHON}
    return {PYTHON: plain, PARTS: fast.replace(loop=PYTHON), **loops}


def quickest(device: str | torch.device = "cpu") -> str:
    """The loop that `fast()` has on a device."""
    return Choices.fast(device).loop


def iterations(config: DQNConfig, choices: Choices, env: Any = ENV, device: str = "cpu") -> Callable[[], None]:
    """A call that goes on with a training by CALL iterations."""
    trainer = DQN(config, choices, env, device)

    def run() -> None:
        end = trainer.env_steps + CALL * config.num_envs
        while trainer.env_steps < end:
            trainer.loop.advance(NoLog(end - trainer.env_steps))

    return run


def changed(config: DQNConfig, axis: str, value: int) -> DQNConfig:
    """The settings at one point of an axis; environments keep an update in every iteration."""
    if axis not in AXES:
        raise ConfigError(f"axis {axis!r} is unknown: accepted are {', '.join(AXES)}.")
    if axis == "environments":
        return config.replace(num_envs=value, train_frequency=value, learning_starts=8 * value)
    return config.replace(**({"batch_size": value} if axis == "batch" else {"hidden": (value, value)}))


def products(config: DQNConfig) -> float:
    """Floating-point operations of the matrix products of an iteration: acting in every env, and the updates."""
    widths = (WIDTHS[0], *config.hidden, WIDTHS[1])
    updates = config.num_envs / config.train_frequency * config.gradient_steps
    return config.num_envs * forward_flops(widths) + updates * update_flops(
        widths, config.batch_size, config.double_dqn
    )


def over(
    axis: str,
    values: Sequence[int],
    config: DQNConfig | None = None,
    *,
    loops: Sequence[str] | None = None,
    device: str = "cpu",
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """An iteration under each of `loops` (names of `ways`) against plain's, rows for each value of `axis` (one of AXES).

    Row: over (the axis), size (the value), variant, label, iteration_us, products_us (what its matrix products would take at
    this machine's peak as measured now), times_products, num_envs, batch_size, hidden, and the fields of a ratio; first the
    baseline's own.
    """
    where, machine = resolve_device(device), describe(steal_interval_s=0)
    config, peak = config or settings(seed=seed), matmul_peak(where)
    loops = (PARTS, "tensors", quickest(where)) if loops is None else loops
    rows: list[Row] = []
    with Progress(rounds * len(values), f"an iteration over {axis}", "rounds", progress) as bar:
        for value in values:
            meter, own = StealMeter(), changed(config, axis, value)
            fields = {"over": axis, "size": value, "num_envs": own.num_envs, "batch_size": own.batch_size}
            fields |= {"hidden": list(own.hidden), "products_us": products(own) / peak * 1e6, "quick": quick}
            for found in _compared(own, loops, str(where), rounds, quick, seed, bar):
                found["label"] = f"{found['variant']}, {value:,} {axis}"
                found["times_products"] = found["iteration_us"] / fields["products_us"]
                both = {**fields, **found}
                rows.append(new_row("loop", device=where, seeds=[seed], machine=machine, meter=meter, **both))
    return rows


def _compared(
    config: DQNConfig, loops: Sequence[str], device: str, rounds: int, quick: bool, seed: int, bar: Progress
) -> Iterator[dict[str, Any]]:
    """The fields of each way, the baseline's first."""
    made, source, where = ways(device), env_source(ENV), torch.device(device)
    barred = {name: SPEEDUPS["loop"].requires(made[name].loop, made[name], config, where, source) for name in loops}
    usable = [name for name, reason in barred.items() if reason is None]
    paired = time_paired(
        iterations(config, made[PYTHON], device=device),
        {name: iterations(config, made[name], device=device) for name in usable},
        rounds=rounds,
        min_round_s=0.005 if quick else 0.02,
        device=device,
        seed=seed,
        progress=lambda done, total: bar.advance(1),
    )
    base = {**ratio_fields(paired, BASELINE_AGAIN), "median_us": paired.median_s(BASELINE) * 1e6}
    found = {PYTHON: {**base, "verdict": "baseline"}}
    for name, reason in barred.items():
        found[name] = ratio_fields(paired, name) if reason is None else no_ratio(paired, reason)
    for name, fields in found.items():
        yield {"variant": name, "iteration_us": float(fields["median_us"]) / CALL, **fields}


def dear_envs(
    costs_us: Sequence[int],
    config: DQNConfig | None = None,
    *,
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """An iteration of the Python loop on an env that costs `costs_us` a step, against the steps of that env alone.

    The ratio is a bound: what any loop could bring there, if all that is not the env cost nothing.
    """
    from rlbench.envs.busy import Busy, work

    machine, config = describe(steal_interval_s=0), config or settings(seed=seed)
    number_s = min(timeit.repeat(lambda: work(20_000), number=1, repeat=5)) / 20_000
    rows = []
    with Progress(rounds * len(costs_us), "dear envs", "rounds", progress) as bar:
        for cost in costs_us:
            meter, env = StealMeter(), Given(Busy, {"iterations": round(cost * 1e-6 / number_s)})
            paired = time_paired(
                iterations(config, Choices.plain(), env),
                {ALONE: _steps_alone(config, env)},
                rounds=rounds,
                min_round_s=0.005 if quick else 0.02,
                seed=seed,
                progress=lambda done, total: bar.advance(1),
            )
            fields = {"over": "cost of an env step", "size": cost, "variant": ALONE, "quick": quick}
            fields |= {"label": f"{cost:,} µs a step", "num_envs": config.num_envs, **ratio_fields(paired, ALONE)}
            rows.append(new_row("loop", seeds=[seed], machine=machine, meter=meter, **fields))
    return rows


def _steps_alone(config: DQNConfig, env: Any) -> Callable[[], None]:
    collector = DQN(config, Choices.plain(), env).collector
    actions = torch.zeros(config.num_envs, dtype=torch.int64).numpy()

    def run() -> None:
        for _ in range(CALL):
            collector.step(actions)

    return run
