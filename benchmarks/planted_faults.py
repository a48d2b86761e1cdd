"""Does the profiler find what is wrong, and is its prediction right? Ten faults, planted one at a time.

In a DQN written by hand, in a script with Stable-Baselines3, and in our own trainers. Each is profiled; then the same training
with and without the fault is timed without a profile, in rounds. `round_trip` needs CUDA and is left out without.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import command
from benchmarks.faults.ours import PLANTED, Planted
from benchmarks.faults.verdicts import judged, measured, metric_of, table
from rlbench.machine import StealMeter, describe
from rlbench.results import Row, new_row

KIND = "benchmark-planted-faults"
FOLDER = Path(__file__).parent / "faults"
SCRIPTS = {"by hand": FOLDER / "dqn_by_hand.py", "Stable-Baselines3": FOLDER / "sb3_script.py"}
MARKET = ("recomputed_features", "file_each_episode")
ROUNDS, QUICK_ROUNDS = 5, 2
PROFILE_S, RUN_S, QUICK_S = 16.0, 3.0, 2.0
WAITS_S = 8.0  # of a run with a waiting env, so that learning begins in it
CUDA_ONLY = "round_trip"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # as all benchmarks: the scripts leave it to who calls them


@dataclass(frozen=True)
class Job:
    """One target with its faults; rounds go over all of them, so that the healthy run serves all."""

    target: str
    faults: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.target


def make_jobs(chosen: Sequence[str] = ()) -> list[Job]:
    """The targets that can run here, with the chosen faults; all of them where none is."""
    wanted = [fault for fault in PLANTED if not chosen or fault in chosen]
    on_cuda = [CUDA_ONLY] if torch.cuda.is_available() and (not chosen or CUDA_ONLY in chosen) else []
    by_hand, sb3 = SCRIPTS
    found = [Job(by_hand, (*wanted, *on_cuda)), Job(sb3, tuple(wanted)), Job("ours", tuple(wanted))]
    if command.version("stable-baselines3") is None:
        found.pop(1)
    return [job for job in found if job.faults]


def profile(words: Sequence[str], theirs: Sequence[str], seconds: float) -> dict[str, Any]:
    """The JSON document of `rlbench profile`."""
    line = [sys.executable, "-m", "rlbench", "profile", *words, "--seconds", str(seconds), "--json"]
    if theirs:
        line += ["--", *theirs]
    ran = subprocess.run(
        line, capture_output=True, text=True, cwd=FOLDER.parents[1], env=os.environ | ONE_THREAD, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"{' '.join(line[1:])} ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout.strip().splitlines()[-1])


def profiled(job: Job, fault: str, seconds: float) -> dict[str, Any]:
    if job.target == "ours":
        return profile(PLANTED[fault].arguments(), [], seconds)
    return profile([str(SCRIPTS[job.target])], ["--fault", fault, "--seconds", "1000"], seconds)


def script_rates_once(script: Path, fault: str, env: str, seconds: float) -> dict[str, float]:
    """The rates that a script reports of itself, run alone."""
    line = [sys.executable, str(script), "--fault", fault, "--env", env, "--seconds", str(seconds)]
    if fault == "env_waits":
        line += ["--learning-starts", "50"]
    ran = subprocess.run(line, capture_output=True, text=True, env=os.environ | ONE_THREAD, check=True)
    return json.loads(ran.stdout.strip().splitlines()[-1])


def script_rates(
    job: Job, rounds: int, seconds: float, on_unit: Callable[[str], None]
) -> dict[str, dict[str, list[float]]]:
    """By fault, rates of the slow, the healthy and once more the healthy run, one of each a round, in random order."""
    script, order = SCRIPTS[job.target], np.random.default_rng(0)
    rates: dict[str, dict[str, list[float]]] = {fault: {"slow": [], "healthy": [], "again": []} for fault in job.faults}
    for _ in range(rounds):
        runs = [("none", env, side) for env in ("cartpole", "market") for side in ("healthy", "again")]
        runs += [(fault, "market" if fault in MARKET else "cartpole", "slow") for fault in job.faults]
        for i in order.permutation(len(runs)):
            fault, env, side = runs[i]
            reached = script_rates_once(script, fault, env, WAITS_S if fault == "env_waits" else seconds)
            for name in job.faults if fault == "none" else (fault,):
                if (env == "market") == (name in MARKET):
                    rates[name][side].append(reached[metric_of(name)])
            on_unit(f"{job.target}, {fault}")
    return rates


def our_rates(planted: Planted, fault: str, rounds: int, block_s: float) -> dict[str, list[float]]:
    """Rates of both sides of one of our own, in blocks that take turns."""
    from rlbench.speedups import Choices
    from rlbench.tuning.contender import Candidate, Contender
    from rlbench.tuning.race import Race
    from rlbench.workloads import workload

    loop = {"loop": "python"} if planted.trainer == "dqn" else {}
    healthy_settings = planted.base | {"total_timesteps": 1_000_000}

    def contender(env: str, slots: Mapping[str, str], settings: Mapping[str, Any], threads: int) -> Contender:
        work = workload(env)
        config = work.config(work.preset_for(planted.trainer), planted.trainer, **(healthy_settings | dict(settings)))
        return Contender(Candidate(Choices.plain().replace(**loop, **slots), threads, config, {}), work.env, "cpu")

    healthy = contender(planted.env, planted.healthy_slots, {}, 1)
    slow = contender(planted.slow_env or planted.env, planted.slots, planted.settings, planted.threads)
    learnt = fault == "small_batch"
    race = Race(
        healthy,
        [slow],
        block_s=block_s,
        rate=lambda candidate, steps, updates, seconds: (
            (updates * candidate.config.batch_size if learnt else steps) / seconds
        ),
    )
    race.run(math.inf, rounds=rounds, drop=False)
    torch.set_num_threads(1)
    return {"slow": race.rates[id(slow)], "healthy": race.rates[id(healthy)], "again": race.again}


def measure(job: Job, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """A row a fault."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    profile_s, run_s = (QUICK_S * 2, QUICK_S) if quick else (PROFILE_S, RUN_S)
    documents, walls = {}, {}
    for fault in job.faults:
        begun = time.perf_counter()
        documents[fault] = profiled(job, fault, profile_s)
        walls[fault] = time.perf_counter() - begun
        on_unit(f"{job.target}, profile of {fault}")
    if job.target == "ours":
        rates = {}
        for fault in job.faults:
            rates[fault] = our_rates(PLANTED[fault], fault, 2 * rounds, 0.2 if quick else 0.5)
            on_unit(f"ours, {fault}")
    else:
        rates = script_rates(job, rounds, run_s, on_unit)
    rows = []
    for fault in job.faults:
        gain = measured(rates[fault])
        fields = {
            "target": job.target,
            "fault": fault,
            "metric": metric_of(fault),
            "rounds": len(rates[fault]["slow"]),
            "quick": quick,
            "profile_wall_s": walls[fault],
        }
        fields |= {**gain, **judged(documents[fault], fault, gain["gain"]), "rates": rates[fault]}
        device = documents[fault]["device"] if job.target == "by hand" else "cpu"  # the others ask for the CPU
        rows.append(new_row(KIND, device=device, seeds=[1], machine=machine, meter=meter, **fields))
    return rows


def units(jobs: Sequence[Job], rounds: int) -> int:
    def of(job: Job) -> int:
        faults = len(job.faults)
        return 2 * faults if job.target == "ours" else faults + rounds * (faults + 4)

    return sum(map(of, jobs))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command.make_parser("planted_faults", __doc__, f"rounds (default {ROUNDS})")
    parser.add_argument("--fault", action="append", choices=[*PLANTED, CUDA_ONLY], help="only this; may be given again")
    options = command.parse(parser, arguments, rounds=ROUNDS, quick_rounds=QUICK_ROUNDS)
    if options.fault == [CUDA_ONLY] and not torch.cuda.is_available():
        parser.error(f"--fault {CUDA_ONLY} needs CUDA, which is not there")
    jobs = command.choose(make_jobs(options.fault or ()), options.only)

    def work(job: Job, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, jobs, units(jobs, options.rounds), work, table, "runs")


if __name__ == "__main__":
    started = time.perf_counter()
    code = main()
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    raise SystemExit(code)
