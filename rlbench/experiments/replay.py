"""Replay: what its capacity costs, what priorities cost, and what frames save."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import torch

from rlbench.batch import Layout, Transitions
from rlbench.buffers import Prioritised, RingFrames, RingNumpy, RingTorch, RowSpec, to_uniform53
from rlbench.experiments.ratios import ratio_fields
from rlbench.machine import StealMeter, describe
from rlbench.progress import Progress
from rlbench.random import Purpose, Stream, random_bits, to_below
from rlbench.results import Row, new_row
from rlbench.speedups import priorities
from rlbench.speedups.replay import random_transitions, windowed_transitions
from rlbench.speedups.speedup import check_equal
from rlbench.timing import BASELINE, time_paired

SPEC = RowSpec(obs_size=16, num_actions=3)
CHUNK = 10_000  # rows that a larger replay is filled with over and over
BATCHES = 2_048  # drawn beforehand: enough that their rows do not stay in the caches by being few
ENVS = 8
Call = Callable[[], object]


def capacity(
    capacities: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000),
    *,
    batch_size: int = 64,
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """Sampling from full rings, over their capacity, on the host.

    The baseline of each capacity is a bare gather of as many rows of the same width: what memory alone costs. A ring whose
    ratio to it does not fall as the capacity grows pays for cache misses and for nothing else.
    """
    rows = []
    with Progress(rounds * len(capacities), "capacity", "rounds", progress) as bar:
        for size in capacities:
            arrays, packed = RingNumpy(SPEC, size), RingTorch(SPEC, size)
            _fill(size, arrays, packed)
            memory = packed.rows.numpy()
            bits = random_bits(seed, Purpose.REPLAY, np.arange(BATCHES)[:, None], np.arange(batch_size))
            index = cycle(list(to_below(bits, size)))
            calls = {
                BASELINE: lambda memory=memory, index=index: memory.take(next(index), 0),
                "ring_numpy": lambda ring=arrays, index=index: ring.sample(next(index)),
                "ring_torch": lambda ring=packed, index=index: ring.sample(next(index)),
                "ring_torch, packed": lambda ring=packed, index=index: ring.sample_packed(next(index)),
            }
            fields = {"size": size, "batch_size": batch_size, "megabytes": packed.nbytes / 1e6}
            rows += _rows("replay-capacity", calls, rounds, quick, seed, bar, fields)
    return rows


def prioritised(
    batch_sizes: Sequence[int] = (32, 128, 512),
    *,
    capacity: int = 100_000,
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """A batch drawn by priority and given new priorities, with each sum tree, beside one drawn uniformly: on the host."""
    rows = []
    errors = np.random.default_rng(seed).exponential(size=(BATCHES, max(batch_sizes)))
    with Progress(rounds * len(batch_sizes), "prioritised", "rounds", progress) as bar:
        for size in batch_sizes:
            uniform = RingTorch(SPEC, capacity)
            made = {name: _prioritised(tree, capacity) for name, tree in priorities.VARIANTS.items()}
            _fill(capacity, uniform, *made.values())
            calls: dict[str, Call] = {BASELINE: _uniform_call(uniform, size, seed)}
            calls |= {
                f"priorities={name}": _prioritised_call(replay, size, seed, errors[:, :size])
                for name, replay in made.items()
            }
            rows += _rows(
                "replay-prioritised",
                calls,
                rounds,
                quick,
                seed,
                bar,
                {"size": size, "batch_size": size, "capacity": capacity},
            )
    return rows


def frames(
    windows: Sequence[int] = (2, 8, 32),
    *,
    features: int = 10,
    capacity: int = 10_000,
    batch_size: int = 128,
    episode: int = 256,
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """Windows of bars stored whole (`ring_torch`) and as frames: bytes a transition, time to sample, time to store a step of
    8 envs. Rows of work "sample" and "store" for each window; `same` says whether all rows of both are equal bit for bit.
    """
    rows = []
    with Progress(2 * rounds * len(windows), "frames", "rounds", progress) as bar:
        for window in windows:
            spec = RowSpec(window * features + 2, 3, layout=Layout(window, features, 2), num_envs=ENVS)
            made = windowed_transitions(2 * capacity // ENVS, spec, seed, episode)
            whole, kept = RingTorch(spec, capacity), RingFrames(spec, capacity)
            steps = [_part(made, start, start + ENVS) for start in range(0, len(made.action), ENVS)]
            for step in steps:
                whole.add(step)
                kept.add(step)
            fields = {
                "window": window,
                "features": features,
                "capacity": capacity,
                "bytes_whole": whole.nbytes / capacity,
                "bytes_frames": kept.nbytes / capacity,
                "same": _same(whole, kept, capacity),
            }
            bits = random_bits(seed, Purpose.REPLAY, np.arange(BATCHES)[:, None], np.arange(batch_size))
            index = cycle(list(to_below(bits, capacity)))
            sample: dict[str, Call] = {
                name: lambda ring=ring, index=index: ring.sample(next(index))
                for name, ring in ((BASELINE, whole), ("ring_frames", kept))
            }
            store: dict[str, Call] = {
                name: lambda ring=ring, steps=endless: ring.add(next(steps))
                for name, ring, endless in ((BASELINE, whole, cycle(steps)), ("ring_frames", kept, cycle(steps)))
            }
            for work, calls in (("sample", sample), ("store", store)):
                own = {**fields, "size": window, "work": work, "batch_size": batch_size}
                rows += _rows("replay-frames", calls, rounds, quick, seed, bar, own)
    return rows


def windowed_env() -> Any:
    """A trading env with windows of 8 bars on a simulated market, for whole trainings."""
    from rlbench.envs.trading import TradingEnv
    from rlbench.simulate import ornstein_uhlenbeck

    return TradingEnv(ornstein_uhlenbeck(2_000, seed=1), window=8)


def _part(rows: Transitions, start: int, stop: int) -> Transitions:
    return Transitions(*(None if field is None else field[start:stop] for field in rows))


def _fill(capacity: int, *replays: Any) -> None:
    chunk = random_transitions(min(CHUNK, capacity), SPEC, seed=0)
    for start in range(0, capacity, len(chunk.action)):
        for replay in replays:
            replay.add(_part(chunk, 0, capacity - start))


def _same(whole: RingTorch, kept: RingFrames, capacity: int) -> bool:
    try:
        check_equal(whole.sample(np.arange(capacity)), kept.sample(np.arange(capacity)))
    except AssertionError:
        return False
    return True


def _prioritised(tree: Callable[[int], Any], capacity: int) -> Prioritised:
    return Prioritised(RingTorch(SPEC, capacity), tree(capacity), alpha=0.6, eps=1e-6)


def _uniform_call(ring: RingTorch, size: int, seed: int) -> Call:
    stream, steps = Stream(seed, Purpose.REPLAY, size), cycle(range(BATCHES))
    return lambda: ring.sample(stream.below(next(steps), len(ring)))


def _prioritised_call(replay: Prioritised, size: int, seed: int, errors: np.ndarray) -> Call:
    stream, steps = Stream(seed, Purpose.REPLAY, 2 * size), cycle(range(BATCHES))

    def call() -> object:
        step = next(steps)
        index, weight = replay.sample(to_uniform53(stream.bits(step)), beta=0.4)
        rows = replay.replay.sample(index)
        replay.update(index, errors[step])
        return rows._replace(weight=torch.from_numpy(weight))

    return call


def _rows(
    kind: str,
    calls: Mapping[str, Call],
    rounds: int,
    quick: bool,
    seed: int,
    bar: Progress,
    fields: Mapping[str, Any],
) -> list[Row]:
    """A row for each call but the baseline's, which stands in all of them."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    paired = time_paired(
        calls[BASELINE],
        {name: call for name, call in calls.items() if name != BASELINE},
        rounds=rounds,
        min_round_s=0.005 if quick else 0.02,
        seed=seed,
        progress=lambda done, total: bar.advance(1),
    )
    names = [name for name in calls if name != BASELINE]
    told = {"quick": quick, **fields}
    return [
        new_row(kind, seeds=[seed], machine=machine, meter=meter, variant=name, **told, **ratio_fields(paired, name))
        for name in names
    ]
