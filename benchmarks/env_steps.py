"""Stepping alone, with random actions: our market envs, 1,024 accounts at once, beside Gym-Trading-Env's one.

A call is as many env steps on every side: one step of each account of ours, as many steps of theirs. Prices, features, positions,
fee and length of an episode are the same; episodes that end are begun anew within the time. Actions are drawn beforehand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import torch

from benchmarks import command
from benchmarks.gym_trading import PACKAGE, peer_like
from benchmarks.text import aligned, interval, number
from benchmarks.workloads import daily_market, trading
from rlbench.envs.batch_trading import BatchTrading
from rlbench.envs.one_by_one import OneByOne
from rlbench.machine import StealMeter, describe
from rlbench.native.envs import NativeEnv
from rlbench.results import Row, new_row
from rlbench.timing import BASELINE, BASELINE_AGAIN, time_paired

KIND = "benchmark-env-steps"
PEER, PEER_AGAIN = "Gym-Trading-Env, one env", "Gym-Trading-Env again"
DRAWN = 16  # steps of actions, over and over

Call = Callable[[], object]


@dataclass(frozen=True)
class Stepping:
    accounts: int

    @property
    def name(self) -> str:
        return f"{self.accounts:,} accounts"


JOBS = (Stepping(1_024),)


def random_actions(accounts: int, actions: int = 3) -> list[np.ndarray]:
    return list(np.random.default_rng(1).integers(0, actions, (DRAWN, accounts)))


def peer_call(accounts: int) -> Call:
    """`accounts` steps of one env of the peer's."""
    env, drawn = peer_like(trading()), cycle([row.tolist() for row in random_actions(accounts)])
    np.random.seed(1)  # where it takes its starts from
    env.reset()

    def run() -> None:
        for action in next(drawn):
            _, _, done, truncated, _ = env.step(action)
            if done or truncated:
                env.reset()

    return run


def native_call(accounts: int) -> Call:
    env, drawn = NativeEnv(BatchTrading(daily_market(), accounts)), cycle(random_actions(accounts))
    return lambda: env.step(next(drawn))


def batched_call(accounts: int) -> Call:
    env = BatchTrading(daily_market(), accounts)
    state, _ = env.reset()
    drawn = cycle([torch.from_numpy(row) for row in random_actions(accounts)])

    @torch.inference_mode()
    def run() -> None:
        nonlocal state
        state, _ = env.step(state, next(drawn))

    return run


def one_by_one_call(accounts: int) -> Call:
    envs, drawn = OneByOne([trading() for _ in range(accounts)], seed=1), cycle(random_actions(accounts))
    return lambda: envs.step(next(drawn))


SIDES = {"one_by_one": one_by_one_call, "batched, eager": batched_call, "native": native_call}


def measure(job: Stepping, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """A row a side; the ratio is the peer's time a step over ours."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    paired = time_paired(
        peer_call(job.accounts),
        {name: make(job.accounts) for name, make in SIDES.items()},
        rounds=rounds,
        min_round_s=command.QUICK_ROUND_S if quick else command.ROUND_S,
        progress=lambda done, total: on_unit(job.name),
    )
    names = {PEER: BASELINE, **{name: name for name in SIDES}, PEER_AGAIN: BASELINE_AGAIN}
    rows = []
    for side, name in names.items():
        ratio: Row = paired.ratio(BASELINE_AGAIN if name == BASELINE else name).fields()
        if name == BASELINE:
            ratio |= {"verdict": "baseline", "ratio": None, "ratio_low": None, "ratio_high": None}
        fields = {
            "workload": job.name,
            "side": side,
            "baseline": PEER,
            "peer": f"{PACKAGE} {command.version(PACKAGE)}",
            **ratio,
            "steps_per_s": job.accounts / paired.median_s(name),
            "features": len(daily_market().feature_names),
            "rounds": paired.rounds,
            "round_times": (paired.times(name) / job.accounts).tolist(),  # seconds an env step
            "quick": quick,
        }
        rows.append(new_row(KIND, seeds=[1], machine=machine, meter=meter, **fields))
    return rows


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = ("stepping", "side", "steps/s", "ratio to the peer", "95 % interval", "A/A band", "verdict")
    return aligned(head, [_cells(row) for row in rows], {0, 1, len(head) - 1}, rows)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["workload"],
        row["side"],
        number(row["steps_per_s"]),
        number(row["ratio"], "x"),
        interval(row["ratio_low"], row["ratio_high"]),
        interval(row["aa_low"], row["aa_high"]),
        row["verdict"],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = command.parse(command.make_parser("env_steps", __doc__), arguments, PACKAGE)
    chosen = command.choose(JOBS, options.only)

    def each(job: Stepping, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, chosen, len(chosen) * options.rounds, each, format_rows)


if __name__ == "__main__":
    sys.exit(main())
