"""Where each speed-up stops paying: time per unit of work over the size, a function for each curve. See `scaling_point.trace`.

The variants that are timed by default need no compilation; `compiled` and `chunked` have to be asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench import simulate
from rlbench.batch import Collected, Transitions
from rlbench.buffers import RingNumpy, RingTorch, RowSpec
from rlbench.config import DQNConfig
from rlbench.envs.executors import EXECUTORS, Collector
from rlbench.envs.factories import TradingFactory
from rlbench.envs.source import EnvSource, env_source
from rlbench.experiments.free_memory import why_not_fit
from rlbench.experiments.scaling_point import Case, Cases, Curve, Setting, trace
from rlbench.models import mlp
from rlbench.random import Purpose, random_bits, to_below
from rlbench.results import Row
from rlbench.speedups import SPEEDUPS, Choices
from rlbench.speedups import environments as slot
from rlbench.speedups.conversion import StackOnce
from rlbench.speedups.replay import random_transitions
from rlbench.speedups.speedup import check_equal
from rlbench.speedups.update import split

NUM_ENVS = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536)
BATCHES = (32, 128, 512, 2_048, 8_192)
WIDTHS = (64, 128, 256, 512, 1_024)
CAPACITIES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
GRADIENT_STEPS = (1, 2, 4, 8, 16, 32, 64)
CURVES = {
    curve.name: curve
    for curve in (
        Curve("environments", "environments", "step of one env", "num_envs", "environments stepped together"),
        Curve("batch", "update", "row of a minibatch", "batch_size", "rows in a minibatch"),
        Curve("width", "update", "row of a minibatch", "width", "units in each hidden layer"),
        Curve("capacity", "replay", "sampled row", "buffer_size", "transitions that replay holds"),
        Curve("gradient_steps", "update", "update", "gradient_steps", "updates in a round"),
    )
}
SPEC = RowSpec(obs_size=16, num_actions=3)
STEPS = 16  # of random actions, taken over and over
COMPARED = 3  # steps and updates whose outcomes are compared
DRAWS = 8_192  # minibatches drawn beforehand: so many that their rows do not stay in the caches by being few
CHUNK = 10_000  # rows that replay is filled with over and over
RATE = 1e-4  # step size: thousands of updates on the same rows must not wear a network out
PLAIN = Setting()


def environments(sizes: Sequence[int] = NUM_ENVS, *, most_single: int = 1_024, setting: Setting = PLAIN) -> list[Row]:
    """The step of one env over the number of trading envs, as collectors give it to a trainer; against a loop over them.

    The loop steps at most `most_single`. Beyond, its rows are `extrapolated`: it is timed with so many, and is taken to cost as
    much per env with more.
    """
    source = env_source(TradingFactory(simulate.martingale(2_000, seed=setting.seed)))
    loops: dict[int, Case] = {}  # the last one, since thousands of objects take seconds to make

    def cases_at(size: int) -> Cases:
        few = min(size, most_single)
        if few not in loops:
            loops.clear()
            loops[few] = _stepping(source, "one_by_one", few, few, setting)
        loop = dataclasses.replace(loops[few], fields={"extrapolated": size > few})
        cases: dict[str, Case | str] = {"one_by_one": loop}
        for name in ("batched", "native"):
            reason = slot.requires(name, None, None, setting.where, source)
            cases[name] = reason or _stepping(source, name, size, few, setting)
        return cases

    check = slot.check if setting.where.type == "cpu" else _check_nearly
    return trace(CURVES["environments"], sizes, cases_at, check, setting, most_single=most_single)


def _stepping(source: EnvSource, executor: str, num_envs: int, compared: int, setting: Setting) -> Case:
    collector: Collector = EXECUTORS[executor](source, num_envs, setting.seed, setting.where)
    step, env = np.arange(STEPS, dtype=np.int64)[:, None], np.arange(num_envs, dtype=np.int64)
    bits = random_bits(setting.seed, Purpose.ACTION, step, env)
    actions = cycle(list(to_below(bits, collector.spec.num_actions)))
    first = slot.Steps([_first(collector.step(next(actions)), compared) for _ in range(COMPARED)])
    return Case(lambda: collector.step(next(actions)), num_envs, first)


def _first(rows: Any, count: int) -> Any:
    """The first rows of each field, as a copy."""
    kept = (field if field is None else field[:count].copy() for field in rows)
    return Collected(*kept)


def _check_nearly(expected: slot.Steps, actual: slot.Steps) -> None:
    """As the slot's own check, for another device, whose functions round otherwise."""
    for name, one, other in zip(slot.FIELDS, expected, actual, strict=True):
        room = 1e-6 if one.is_floating_point() else 0
        torch.testing.assert_close(other, one, rtol=room, atol=room, msg=lambda text, name=name: f"{name}: {text}")


def batch(
    sizes: Sequence[int] = BATCHES,
    *,
    hidden: int = 64,
    variants: Sequence[str] = ("native",),
    setting: Setting = PLAIN,
) -> list[Row]:
    """A row of a minibatch over the rows in it: one update of a 16-hidden-hidden-3 network, against PyTorch's eager one."""

    def cases_at(size: int) -> Cases:
        return _updating(variants, size, hidden, 1, size, setting)

    return trace(CURVES["batch"], sizes, cases_at, _check_losses, setting, hidden=hidden)


def width(
    sizes: Sequence[int] = WIDTHS,
    *,
    batch_size: int = 128,
    variants: Sequence[str] = ("native",),
    setting: Setting = PLAIN,
) -> list[Row]:
    """The same over the width of the two hidden layers."""

    def cases_at(size: int) -> Cases:
        return _updating(variants, batch_size, size, 1, batch_size, setting)

    return trace(CURVES["width"], sizes, cases_at, _check_losses, setting, batch_size=batch_size)


def gradient_steps(
    sizes: Sequence[int] = GRADIENT_STEPS,
    *,
    batch_size: int = 32,
    hidden: int = 64,
    variants: Sequence[str] = ("native",),
    setting: Setting = PLAIN,
) -> list[Row]:
    """An update over the updates in a round, whose minibatches lie ready in one block. A chunk needs two updates or more."""

    def cases_at(size: int) -> Cases:
        fit = [name for name in variants if size > 1 or name not in ("chunked", "cuda_graph")]
        return _updating(fit, batch_size, hidden, size, size, setting)

    fields = {"batch_size": batch_size, "hidden": hidden}
    return trace(CURVES["gradient_steps"], sizes, cases_at, _check_losses, setting, **fields)


def _updating(
    variants: Sequence[str], batch_size: int, hidden: int, updates: int, units: int, setting: Setting
) -> Cases:
    config = DQNConfig(batch_size=batch_size, hidden=(hidden, hidden), gradient_steps=updates)
    cases: dict[str, Case | str] = {}
    for name in ("eager", *variants):
        reason = SPEEDUPS["update"].requires(name, None, config, setting.where, None)
        cases[name] = reason or _round(name, config, units, setting)
    return cases


def _round(variant: str, config: DQNConfig, units: int, setting: Setting) -> Case:
    """All updates of a round, from the same weights and on the same minibatches for every variant."""
    where, generator = setting.where, torch.Generator().manual_seed(setting.seed)
    networks = [mlp(SPEC.obs_size, config.hidden, SPEC.num_actions, generator).to(where) for _ in range(2)]
    optimizer = SPEEDUPS["optimizer"].variants[Choices.plain(where).optimizer]
    update = SPEEDUPS["update"].variants[variant](*networks, config, optimizer)
    rows = StackOnce()(random_transitions(config.batch_size * config.gradient_steps, SPEC, setting.seed))
    rows = Transitions(*(None if t is None else t.to(where) for t in rows))
    batches = split(rows, config.batch_size * update.chunk)

    def call() -> list[Tensor]:
        return [update(each, RATE).loss for each in batches]

    losses = torch.cat([loss.reshape(-1) for _ in range(COMPARED) for loss in call()])
    return Case(call, units, losses, {"compile_s": update.build_s})


def _check_losses(expected: Tensor, actual: Tensor) -> None:
    """Losses of updates that follow each other show the weights that the ones before have left."""
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-6)


def capacity(sizes: Sequence[int] = CAPACITIES, *, batch_size: int = 64, setting: Setting = PLAIN) -> list[Row]:
    """A sampled row over the transitions that a full replay holds, as tensors on the device.

    A size that would take more than a third of the memory that is free has rows that say so.
    """
    rings = {"ring_numpy": RingNumpy, "ring_torch": RingTorch}

    def cases_at(size: int) -> Cases:
        reason = why_not_fit(_bytes(size, setting.where))
        return (
            dict.fromkeys(rings, reason)
            if reason
            else {n: _sampling(r, size, batch_size, setting) for n, r in rings.items()}
        )

    return trace(CURVES["capacity"], sizes, cases_at, check_equal, setting, batch_size=batch_size)


def _bytes(size: int, where: torch.device) -> dict[str, int]:
    """Memory by device that both rings take."""
    needs = {"cpu": size * RingNumpy(SPEC, 1).nbytes}
    needs[str(where)] = needs.get(str(where), 0) + size * RingTorch(SPEC, 1).nbytes
    return needs


def _sampling(ring: Callable[..., Any], size: int, batch_size: int, setting: Setting) -> Case:
    replay, where = ring(SPEC, size, setting.where), setting.where
    rows = random_transitions(min(CHUNK, size), SPEC, setting.seed)
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        replay.add(rows if count == len(rows.action) else Transitions(*(f if f is None else f[:count] for f in rows)))
    draws = random_bits(setting.seed, Purpose.REPLAY, np.arange(DRAWS)[:, None], np.arange(batch_size))
    index, convert = cycle(list(to_below(draws, size))), StackOnce()

    def of_arrays() -> Transitions:
        return Transitions(*(t if t is None else t.to(where) for t in convert(replay.sample(next(index)))))

    def of_tensors() -> Transitions:
        return replay.sample(next(index))

    call = of_tensors if replay.gives == "tensors" else of_arrays
    return Case(call, batch_size, call(), {"megabytes": replay.nbytes / 1e6})
