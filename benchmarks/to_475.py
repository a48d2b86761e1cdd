"""Wall-clock to 475 on CartPole-v1: ours from a cold and from a warm cache, beside Stable-Baselines3 with 1 and with 10 envs.

Each training is a process of its own (benchmarks/goal.py says when it ends). Seconds count from when everything is imported,
what is built or compiled included and evaluations left out; those of the imports are told beside them. All trainings of a seed
follow one another. A cold cache is an empty folder; the warm training of the same seed finds there what the cold one built.
The control is cold against warm, less the seconds of the build: the same code, the same training, twice.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import command
from benchmarks.goal import EPISODES, GOAL
from benchmarks.sb3_dqn import PEER
from benchmarks.text import aligned, interval, number
from rlbench.machine import StealMeter, describe
from rlbench.native.build import CACHE_VARIABLE
from rlbench.results import Row, new_row
from rlbench.timing import MIN_ROUNDS, compare

ROOT = Path(__file__).resolve().parent.parent
KIND = "benchmark-to-475"
SEEDS, CAP, EVERY = 5, 100_000, 2_000
COLD, WARM = "ours, cold cache", "ours, warm cache"
PEERS = {"sb3, 1 env": "sb3-1", "sb3, 10 envs": "sb3-10"}

Outcome = dict[str, Any]  # of `Race`
Racing = Callable[[str, int, dict[str, str]], Outcome]  # (side as goal.py names it, seed, environment variables)


@dataclass
class Contest:
    """Seeds 1 to `seeds`; a training ends at `cap` env steps, and is looked at every `every`."""

    seeds: int
    cap: int = CAP
    every: int = EVERY
    name: str = field(default="CartPole-v1 to 475", init=False)

    @property
    def processes(self) -> int:
        return self.seeds * (len(PEERS) + 2)

    def race(self, side: str, seed: int, variables: Mapping[str, str]) -> Outcome:
        """One training in a fresh process, on one thread."""
        arguments = [side, repr(time.time()), str(seed), str(self.cap), str(self.every)]
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.goal", *arguments],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
            capture_output=True,
            text=True,
        )
        if run.returncode:
            raise RuntimeError(f"the training of {side} with seed {seed} failed: {run.stderr.strip()[-1000:]}")
        return json.loads(run.stdout.splitlines()[-1])


def contest(seeds: int, race: Racing, on_unit: Callable[[str], None]) -> dict[str, list[Outcome]]:
    """Outcomes of each side, one a seed; the order within a seed is drawn, but that cold comes just before warm."""
    kept: dict[str, list[Outcome]] = {name: [] for name in (*PEERS, COLD, WARM)}
    order = np.random.default_rng(0)

    def go(name: str, side: str, seed: int, variables: dict[str, str]) -> None:
        kept[name].append(race(side, seed, variables))
        on_unit(f"{name}, seed {seed}")

    for seed in range(1, seeds + 1):
        for i in order.permutation(len(PEERS) + 1):
            if i < len(PEERS):
                name = list(PEERS)[i]
                go(name, PEERS[name], seed, {})
                continue
            with tempfile.TemporaryDirectory() as folder:
                go(COLD, "ours", seed, {CACHE_VARIABLE: folder})
                go(WARM, "ours", seed, {CACHE_VARIABLE: folder})
    return kept


def measure(job: Contest, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """A row a side, with every seed's seconds; the ratio is to the better of the peer's sides."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    found = contest(job.seeds, job.race, on_unit)
    shared = {
        "workload": job.name,
        "peer": f"{PEER} {command.version(PEER)}",
        "goal": GOAL,
        "eval_episodes": EPISODES,
        "eval_frequency": job.every,
        "most_env_steps": job.cap,
        "rounds": job.seeds,
        "quick": quick,
    }
    seeds = list(range(1, job.seeds + 1))
    return [
        new_row(KIND, seeds=seeds, machine=machine, meter=meter, side=side, **numbers(found, side), **shared)
        for side in found
    ]


def numbers(found: Mapping[str, Sequence[Outcome]], side: str) -> Row:
    """Medians, every seed, and the ratio to the peer's better side (above 1: ours is sooner there)."""
    own, best = found[side], better(found)
    reached = [outcome["seconds"] for outcome in own if outcome["seconds"] is not None]
    spent = [outcome["spent_s"] for outcome in own]
    return {
        "baseline": best,
        **_ratio(found, best, side),
        "median_s": statistics.median(spent),
        "median_with_imports_s": statistics.median(o["spent_s"] + o["imports_s"] for o in own),
        "reached": len(reached),
        "seed_s": spent,  # where the goal was not reached: until the end
        "seed_reached": [outcome["seconds"] is not None for outcome in own],
        **{
            f"seed_{name}": [outcome[name] for outcome in own]
            for name in ("env_steps", "updates", "build_s", "imports_s")
        },
        "seed_last_mean": [outcome["last_mean"] for outcome in own],
    }


def better(found: Mapping[str, Sequence[Outcome]]) -> str:
    """The peer's side that gets there more often, or as often and sooner by the median."""

    def merit(side: str) -> tuple[int, float]:
        missed = sum(outcome["seconds"] is None for outcome in found[side])
        return missed, statistics.median(outcome["spent_s"] for outcome in found[side])

    return min(PEERS, key=merit)


def _ratio(found: Mapping[str, Sequence[Outcome]], best: str, side: str) -> Row:
    """Where the peer did not get there, its time until the end stands in, which is too short; where ours did not, no ratio."""
    empty = dict.fromkeys(("ratio", "ratio_low", "ratio_high", "aa_low", "aa_high"))
    if side == best:
        return {**empty, "verdict": "baseline"}
    if any(outcome["seconds"] is None for outcome in found[side]):
        return {**empty, "verdict": "not always reached"}
    base, own, cold, warm = (np.array([o["spent_s"] for o in found[s]]) for s in (best, side, COLD, WARM))
    built = np.array([outcome["build_s"] for outcome in found[COLD]])
    return compare(base, own, base * (cold - built) / warm).fields()


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        "side", "seconds", "of each seed", "env steps", "reached", "built in", "with imports", "ratio to the better sb3",
        "95 % interval", "A/A band", "verdict",
    )  # fmt: skip
    return aligned(head, [_cells(row) for row in rows], {0, 2, len(head) - 1}, [_noted(row) for row in rows])


def _noted(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Seeds are fewer than rounds elsewhere: enough to cite are as many as have a verdict."""
    return row if row["rounds"] < MIN_ROUNDS else {**row, "rounds": command.ROUNDS}


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    each = [f"{s:.1f}{'' if ok else '+'}" for s, ok in zip(row["seed_s"], row["seed_reached"], strict=True)]
    return (
        row["side"],
        number(row["median_s"], " s"),
        " ".join(each),
        f"{statistics.median(row['seed_env_steps']):,.0f}",
        f"{row['reached']} of {row['rounds']}",
        number(statistics.median(row["seed_build_s"]), " s"),
        number(row["median_with_imports_s"], " s"),
        number(row["ratio"], "x"),
        interval(row["ratio_low"], row["ratio_high"]),
        interval(row["aa_low"], row["aa_high"]),
        row["verdict"],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command.make_parser("to_475", __doc__, f"seeds (default {SEEDS})")
    parser.add_argument("--cap", type=int, default=CAP, help=f"env steps at which a training ends (default {CAP:,})")
    parser.add_argument("--every", type=int, default=EVERY, help=f"env steps between evaluations (default {EVERY:,})")
    options = command.parse(parser, arguments, PEER, rounds=SEEDS, quick_rounds=1)
    jobs = command.choose([Contest(options.rounds, options.cap, options.every)], options.only)
    units = sum(job.processes for job in jobs)
    return command.run(
        options, jobs, units, lambda job, on_unit: measure(job, options.quick, on_unit), format_rows, "trainings"
    )


if __name__ == "__main__":
    sys.exit(main())
