"""Is what `tune` finds as good as the best of all? A small grid, searched through and through, then by races."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks import command
from benchmarks.text import aligned
from rlbench.config import DQNConfig
from rlbench.envs.source import env_source
from rlbench.machine import StealMeter, describe
from rlbench.results import Row, new_row
from rlbench.tuning import tune
from rlbench.tuning.candidates import Space
from rlbench.tuning.contender import Candidate, Contender
from rlbench.tuning.race import Race

KIND = "benchmark-tune-grid"
ROUNDS, QUICK_ROUNDS = 6, 2
GRID = {
    "update": ("eager", "native"),
    "optimizer": ("for_loop", "foreach", "fused"),
    "replay": ("deque", "ring_numpy", "ring_torch"),
    "conversion": ("each_sample", "stack_once", "preallocated"),
}
TARGET = 0.95  # of the rate of the best of the others
TOP = 3


@dataclass(frozen=True)
class Job:
    name: str = "DQN on CartPole-v1, loop=python"


def grid(space: Space) -> list[Candidate]:
    """All valid combinations that differ in the slots in use."""
    found: dict[tuple, Candidate] = {}
    for variants in itertools.product(*GRID.values()):
        choices = space.of({**space.plain.to_dict(), **dict(zip(GRID, variants, strict=True))})
        if choices is not None:
            found.setdefault(tuple(sorted(space.in_use(choices).items())), space.candidate(choices, 1))
    return list(found.values())


def measure(job: Job, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """One row: the rate of tune's choice over that of the best other one of the grid, in a last race of the first few."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    config, env, block_s = DQNConfig.preset("cartpole"), "CartPole-v1", 0.05 if quick else 0.2
    space = Space(config, env_source(env), torch.device("cpu"), slots=list(GRID), threads=(1,))
    contenders = [Contender(candidate, env, "cpu") for candidate in grid(space)]
    standings = Race(contenders[0], contenders[1:], block_s=block_s).run(math.inf, rounds=rounds, drop=False)
    on_unit(f"{len(contenders)} combinations")
    budget_s, slots = 10 if quick else 60, list(GRID)
    tuned = tune(
        config, env, device="cpu", budget_s=budget_s, slots=slots, threads=(1,), block_s=block_s, progress=False
    )
    on_unit("tune")
    # The fastest of many by a few rounds is as much lucky as fast: the first few run again, afresh, against what was found.
    found = space.candidate(tuned.choices, 1)
    top = sorted(standings, key=lambda standing: -standing.ratio)
    names = [standing.candidate for standing in top if space.in_use(standing.candidate.choices) != tuned.used][:TOP]
    finalists = [Contender(candidate, env, "cpu") for candidate in (found, *names)]
    last = Race(finalists[0], finalists[1:], block_s=block_s)
    best = last.run(math.inf, rounds=5 if quick else 20, drop=False)[1]
    on_unit("the last ones")
    for contender in (*contenders, *finalists):
        contender.close()
    fields: dict[str, Any] = {
        "job": job.name,
        "combinations": len(contenders),
        "best": best.candidate.label,
        "tuned": found.label,
        "ratio": 1 / best.ratio,
        "ratio_low": 1 / best.high,
        "ratio_high": 1 / best.low,
        "aa_low": best.aa_low,
        "aa_high": best.aa_high,
        "tune_s": tuned.seconds,
        "target": TARGET,
        "met": 1 / best.ratio >= TARGET,
        "rounds": best.rounds,
        "quick": quick,
        "grid": [(s.candidate.label, s.ratio, s.low, s.high) for s in standings],
    }
    return [new_row(KIND, device="cpu", seeds=[config.seed], machine=machine, meter=meter, **fields)]


def table(rows: Sequence[Row]) -> str:
    """What was best, what was found, and how they compare."""
    head = ("combinations", "best of the others", "found by tune", "rate of that over the best's", "target")
    lines = [
        (
            str(row["combinations"]),
            row["best"],
            row["tuned"],
            f"{row['ratio']:.3f} [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}]",
            f"{row['target']}: {'met' if row['met'] else 'MISSED'}",
        )
        for row in rows
    ]
    return aligned(head, lines, {1, 2}, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    options = command.parse(
        command.make_parser("tune_grid", __doc__), arguments, rounds=ROUNDS, quick_rounds=QUICK_ROUNDS
    )

    def work(job: Job, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, [Job()], 3, work, table, "parts")


if __name__ == "__main__":
    sys.exit(main())
