"""Interleaved rounds: every side trains once a round, the two baselines twice, in a random order and with one seed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.sides import Run, Side
from benchmarks.workloads import Workload

BASELINE, OWN_BASELINE = "sb3", "plain"
AGAIN = {"sb3 again": BASELINE, "plain again": OWN_BASELINE}  # the A/A controls: a baseline against itself


class UnequalWork(RuntimeError):
    """Two sides did not do the same work, so that their times cannot be compared."""


def with_controls(sides: Mapping[str, Side]) -> dict[str, Side]:
    """The sides, and the baselines among them a second time."""
    return {**sides, **{again: sides[of] for again, of in AGAIN.items() if of in sides}}


def run_rounds(
    workload: Workload,
    sides: Mapping[str, Side],
    rounds: int,
    order_seed: int = 0,
    on_run: Callable[[str], None] = lambda name: None,
) -> dict[str, list[Run]]:
    """Runs of each side, one a round; round r trains with seed r.

    Args:
        sides: `BASELINE` and others, by name.
        on_run: called with a side's name after each training.

    Raises:
        UnequalWork: where env steps, updates or parameters differ.
    """
    trainers = with_controls(sides)
    names = list(trainers)
    kept: dict[str, list[Run]] = {name: [] for name in names}
    order = np.random.default_rng(order_seed)
    for seed in range(rounds + 1):  # round 0 is the warm-up: imports, allocators, caches; checked, not kept
        runs: dict[str, Run] = {}
        for i in order.permutation(len(names)):
            gc.collect()  # what one side leaves behind is not the next one's to clean up
            runs[names[i]] = trainers[names[i]](workload, seed)
            on_run(names[i])
        check_same_work(workload, runs)
        if seed:
            for name in names:
                kept[name].append(runs[name])
    return kept


def check_same_work(workload: Workload, runs: Mapping[str, Run]) -> None:
    """Env steps and updates as the config asks for, networks of one size.

    Raises:
        UnequalWork: naming workload, side and count.
    """
    expected = {
        "env_steps": workload.config.total_timesteps,
        "updates": workload.expected_updates,
        "parameters": runs[BASELINE].parameters,
    }
    for name, run in runs.items():
        for what, wanted in expected.items():
            found = getattr(run, what)
            if found != wanted:
                raise UnequalWork(f"{workload.name}: {name} did {what}={found} where {wanted} were asked for.")
