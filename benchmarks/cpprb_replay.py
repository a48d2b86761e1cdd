"""Our replays beside cpprb's (C++ and Cython): rows beside the reports, a table at the end.

Both hold rows of 16 + 1 + 1 + 16 + 1 = 35 float32 (obs, action, reward, next_obs, done); ours of two more, since they tell a
termination from a truncation and keep the discount. Both draw the slots of a batch themselves, ours from its counter-based hash.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from benchmarks import command
from rlbench.batch import Transitions
from rlbench.buffers import Prioritised, RingNumpy, RingTorch, RowSpec, SumTreeLoop, SumTreeVectorised, to_uniform53
from rlbench.machine import StealMeter, describe
from rlbench.random import Purpose, Stream
from rlbench.results import Row, new_row
from rlbench.speedups.replay import random_transitions
from rlbench.tables import format_table
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, time_paired

KIND, PEER = "benchmark-cpprb-replay", "cpprb"
SPEC = RowSpec(obs_size=16, num_actions=3)
BATCH, ALPHA, BETA, EPS = 64, 0.6, 0.4, 1e-6
CAPACITIES = (10_000, 1_000_000)
FILL = 10_000  # rows of random numbers that a larger replay is filled with over and over
FIELDS = {"obs": 16, "act": 1, "rew": 1, "next_obs": 16, "done": 1}

Call = Callable[[], object]


@dataclass(frozen=True)
class Workload:
    """One job, and the calls that do it."""

    name: str
    capacity: int
    rows: int  # of a call
    sides: Callable[[int, int], Mapping[str, Call]]  # (capacity, rows) -> a call for each side, cpprb's first


def peer_version() -> str | None:
    return command.version(PEER)


def peer_replay(capacity: int, prioritised: bool = False) -> Any:
    """A buffer of cpprb with the fields above; of a prioritised one, alpha and eps are ours."""
    from cpprb import PrioritizedReplayBuffer, ReplayBuffer

    fields = {name: {"shape": size, "dtype": np.float32} for name, size in FIELDS.items()}
    return (
        PrioritizedReplayBuffer(capacity, fields, alpha=ALPHA, eps=EPS)
        if prioritised
        else ReplayBuffer(capacity, fields)
    )


def peer_rows(rows: Transitions) -> dict[str, np.ndarray]:
    """The same transitions as cpprb's keyword arguments."""
    return {"obs": rows.obs, "act": rows.action, "rew": rows.reward, "next_obs": rows.next_obs, "done": rows.terminated}


def filled(capacity: int, *replays: Any, peer: Any) -> None:
    """Put the same `capacity` rows into all."""
    chunk = random_transitions(min(FILL, capacity), SPEC, seed=1)
    for start in range(0, capacity, len(chunk.action)):
        part = Transitions(*(None if f is None else f[: capacity - start] for f in chunk))
        peer.add(**peer_rows(part))
        for replay in replays:
            replay.add(part)


def sample_sides(capacity: int, rows: int) -> dict[str, Call]:
    """Draw and copy a batch."""
    peer, arrays, tensors = peer_replay(capacity), RingNumpy(SPEC, capacity), RingTorch(SPEC, capacity)
    filled(capacity, arrays, tensors, peer=peer)
    stream, step = Stream(1, Purpose.REPLAY, rows), count()

    def draw() -> np.ndarray:
        return stream.below(next(step), capacity)

    return {
        PEER: lambda: peer.sample(rows),
        "ring_numpy, a NumPy array a field": lambda: arrays.sample(draw()),
        "ring_torch, a tensor a field": lambda: tensors.sample(draw()),
        "ring_torch, packed rows": lambda: tensors.sample_packed(draw()),
    }


def insert_sides(capacity: int, rows: int) -> dict[str, Call]:
    """Store rows in a full replay."""
    peer, arrays, tensors = peer_replay(capacity), RingNumpy(SPEC, capacity), RingTorch(SPEC, capacity)
    filled(capacity, arrays, tensors, peer=peer)
    new = random_transitions(rows, SPEC, seed=2)
    told = peer_rows(new)
    return {
        PEER: lambda: peer.add(**told),
        "ring_numpy": lambda: arrays.add(new),
        "ring_torch": lambda: tensors.add(new),
    }


def prioritised_sides(capacity: int, rows: int) -> dict[str, Call]:
    """Draw and copy a batch by priority, with weights, and give its rows new priorities."""
    peer = peer_replay(capacity, prioritised=True)
    ours = {
        name: Prioritised(RingNumpy(SPEC, capacity), tree(capacity), ALPHA, EPS)
        for name, tree in (("loop", SumTreeLoop), ("vectorised", SumTreeVectorised))
    }
    filled(capacity, *ours.values(), peer=peer)
    errors = np.abs(np.random.default_rng(3).standard_normal(rows))
    stream, step = Stream(1, Purpose.REPLAY, 2 * rows), count()

    def peer_call() -> object:
        batch = peer.sample(rows, beta=BETA)
        peer.update_priorities(batch["indexes"], errors)
        return batch

    def call(replay: Prioritised) -> object:
        index, weight = replay.sample(to_uniform53(stream.bits(next(step))), BETA)
        batch = replay.replay.sample(index)
        replay.update(index, errors)
        return batch, weight

    return {PEER: peer_call} | {f"priorities={name}": lambda own=own: call(own) for name, own in ours.items()}


def workloads(quick: bool = False) -> list[Workload]:
    capacities = CAPACITIES[:1] if quick else CAPACITIES
    return [
        *(Workload(f"sample {BATCH} of {n:,} rows", n, BATCH, sample_sides) for n in capacities),
        *(Workload(f"insert {n} row{'s' if n > 1 else ''}", capacities[0], n, insert_sides) for n in (1, BATCH)),
        *(Workload(f"prioritised, {BATCH} of {n:,} rows", n, BATCH, prioritised_sides) for n in capacities),
    ]


def measure(workload: Workload, rounds: int, quick: bool, on_round: Callable[[int, int], None]) -> list[Row]:
    """A row a side; the ratio is cpprb's time over ours, so above 1 we are faster."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    peer, *others = (sides := workload.sides(workload.capacity, workload.rows))
    paired = time_paired(
        sides[peer],
        {name: sides[name] for name in others},
        rounds=rounds,
        min_round_s=command.QUICK_ROUND_S if quick else command.ROUND_S,
        progress=on_round,
    )
    return [
        new_row(
            KIND,
            seeds=[1],
            machine=machine,
            meter=meter,
            workload=workload.name,
            capacity=workload.capacity,
            batch_rows=workload.rows,
            baseline=PEER,
            peer=f"{PEER} {peer_version()}",
            quick=quick,
            **_numbers(paired, side),
        )
        for side in (peer, *others)
    ]


def _numbers(paired: Paired, side: str) -> Row:
    """Of the peer's own row, the ratio is that of the same code timed twice."""
    name = BASELINE if side == PEER else side
    ratio = paired.ratio(BASELINE_AGAIN if side == PEER else side).fields()
    if side == PEER:
        ratio["verdict"] = "baseline"
    times = {"median_us": paired.median_s(name) * 1e6, "round_times": paired.times(name).tolist()}
    return {"side": side, **ratio, **times, "rounds": paired.rounds}


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """An aligned text table; every side has a line, whether it is faster or slower than the peer."""
    told = {"same": None, "not_measured": None, "error": None}
    return format_table(
        [{**r, "slot": r["workload"], "variant": r["side"], "size": r["capacity"], **told} for r in rows]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write rows after each workload, print the table."""
    options = command.parse(command.make_parser("cpprb_replay", __doc__), arguments, PEER)
    chosen = command.choose(workloads(options.quick), options.only)

    def each(workload: Workload, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(workload, options.rounds, options.quick, lambda done, total: on_unit(workload.name))

    return command.run(options, chosen, len(chosen) * options.rounds, each, format_rows)


if __name__ == "__main__":
    sys.exit(main())
