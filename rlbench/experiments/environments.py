"""How executors compare over the number of environments, and from which cost of an env step on worker processes pay (A8).

The slot `environments` is measured as any other; where many environments are asked for, without a process for each.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlbench.envs.factories import Given
from rlbench.envs.make import make_collector
from rlbench.experiments.ratios import ratio_fields
from rlbench.experiments.sameness import same_answers
from rlbench.machine import StealMeter, describe
from rlbench.measure import measure
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import Speedup
from rlbench.speedups import environments as slot
from rlbench.timing import time_paired

COSTS_US = (1, 10, 100, 1_000, 10_000)  # microseconds of a step


def without(speedup: Speedup, *variants: str) -> Speedup:
    """A slot without some of its variants."""
    return dataclasses.replace(speedup, variants={n: v for n, v in speedup.variants.items() if n not in variants})


def over_sizes(sizes: Sequence[int], processes: Sequence[int] = (), **arguments: Any) -> list[Row]:
    """`measure` of the slot `environments` at `sizes`; those among `processes` with a process for each environment, too.

    `arguments` are those of `measure`. A row without a baseline of its own is held against one_by_one.
    """
    rows = []
    for size in sizes:
        known = slot.SPEEDUP if size in processes else without(slot.SPEEDUP, "async")
        rows += measure([known.name], sizes=[size], speedups={known.name: known}, **arguments)
    return rows


def same_everywhere(sizes: Sequence[int], processes: Sequence[int], seeds: Sequence[int], device: str) -> list[Row]:
    """`same_answers` of the slot `environments` at `sizes`, and of its processes at the numbers given, for the first seed."""
    rows = same_answers(without(slot.SPEEDUP, "async"), sizes, seeds, device)
    inside = [name for name in slot.SPEEDUP.variants if name not in ("one_by_one", "async")]
    return rows + same_answers(without(slot.SPEEDUP, *inside), processes, seeds[:1], device)


def step_costs(
    costs_us: Sequence[int] = COSTS_US,
    processes: Sequence[int] = (2,),
    *,
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """Gymnasium's AsyncVectorEnv against its SyncVectorEnv, a row for each number of environments and cost of a step.

    Row: variant ("async, N processes"), size (the cost asked for, µs), step_us (what a step took in this process), processes,
    cores, and the fields of a ratio. A call steps all environments once.
    """
    machine, per_iteration, rows = describe(steal_interval_s=0), _seconds_an_iteration(), []
    with Progress(rounds * len(costs_us) * len(processes), "worker processes", "rounds", progress) as bar:
        for count in processes:
            both = [_busy(count, executor, seed) for executor in ("sync", "async")]
            try:
                for cost in costs_us:
                    meter = StealMeter()
                    for collector in both:
                        collector.envs.set_attr("iterations", round(cost * 1e-6 / per_iteration))
                    actions = np.zeros(count, np.int64)
                    calls = [lambda collector=collector: collector.step(actions) for collector in both]  # noqa: B023
                    paired = time_paired(
                        calls[0],
                        {"async": calls[1]},
                        rounds=rounds,
                        min_round_s=0.005 if quick else 0.02,
                        seed=seed,
                        progress=lambda done, total: bar.advance(1),
                    )
                    fields = {
                        "variant": f"async, {count} processes",
                        "size": cost,
                        "processes": count,
                        "cores": max(1, math.floor(machine.usable_cores)),
                        "label": f"{count} processes, {cost:,} µs a step",
                        "quick": quick,
                        **ratio_fields(paired, "async"),
                    }
                    fields["step_us"] = float(fields["baseline_us"]) / count
                    rows.append(new_row("step_cost", seeds=[seed], machine=machine, meter=meter, **fields))
            finally:
                for collector in both:
                    collector.close()
    return rows


def _busy(count: int, executor: str, seed: int) -> Any:
    from rlbench.envs.busy import Busy

    return make_collector(Given(Busy, {}), count, seed, environments=executor)


def _seconds_an_iteration(iterations: int = 20_000, repeats: int = 5) -> float:
    from rlbench.envs.busy import work

    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work(iterations)
        times.append((time.perf_counter() - start) / iterations)
    return min(times)


def pays_from(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The cost of a step (µs) from which on processes are faster, found between two measured ones by their ratios.

    `rows` of one number of processes: size, ratio, verdict. None where they are not faster at the largest cost; the smallest
    cost where they are at all.
    """
    dearer: Mapping[str, Any] | None = None
    for row in sorted(rows, key=lambda row: row["size"], reverse=True):
        if row["verdict"] != "faster":
            return None if dearer is None else _crossing(row, dearer)
        dearer = row
    return None if dearer is None else float(dearer["size"])


def _crossing(cheap: Mapping[str, Any], dear: Mapping[str, Any]) -> float:
    """Where the line between two points on logarithmic axes has the ratio 1."""
    low, high = math.log(cheap["ratio"]), math.log(dear["ratio"])
    share = min(1.0, max(0.0, -low / (high - low))) if high > low else 1.0
    return float(cheap["size"] * (dear["size"] / cheap["size"]) ** share)
