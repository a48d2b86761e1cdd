"""One iteration of the native loop beside its bare matrix products: how much is anything else?

An iteration steps 10 CartPoles and does one update. Its products are counted as the algorithm needs them: forward through
every layer on the 10 rows that are acted on; on the minibatch forward through every layer of the target network at the next
states and of the online network at the states (Double DQN: of the online network at the next states, too); backward one product
for the weights of each layer, and one for the inputs of each but the first. They are `torch.mm(out=)` calls of these shapes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks import command
from benchmarks.text import aligned, interval, number
from benchmarks.workloads import RARE, cartpole, settings
from rlbench.config import DQNConfig
from rlbench.machine import StealMeter, describe
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.speedups.loop import NoLog
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, compare, time_paired
from rlbench.trainers.dqn import DQN

KIND = "benchmark-iteration"
ITERATIONS = 100  # in a call of the loop: what lies between two log points of a training
IN_A_ROW, ALONE, LOOP, AGAIN = "one after another", "each alone, summed", "the iteration", "one after another, again"

Call = Callable[[], object]


class Product(NamedTuple):
    """(rows, inner) times (inner, columns), `times` an iteration."""

    name: str
    rows: int
    inner: int
    columns: int
    times: int


@dataclass(frozen=True)
class Iteration:
    name: str
    config: DQNConfig


def jobs() -> list[Iteration]:
    """As in the comparison with Stable-Baselines3, at the exploration rate of the end; and with Double DQN, the default."""
    config = settings(10**9, num_envs=10, start_e=0.05, end_e=0.05, **RARE)
    return [Iteration("DQN", config), Iteration("Double DQN", config.replace(double_dqn=True))]


def products(config: DQNConfig, inputs: int, outputs: int) -> list[Product]:
    """Those of one iteration, in order."""
    widths = (inputs, *config.hidden, outputs)
    layers, n, b = list(pairwise(widths)), config.num_envs, config.batch_size
    passes = 3 if config.double_dqn else 2
    acting = [Product(f"act {i}-{o}", n, i, o, 1) for i, o in layers]
    forward = [Product(f"forward {i}-{o}", b, i, o, passes) for i, o in layers]
    weights = [Product(f"weights {i}-{o}", o, b, i, 1) for i, o in layers]
    inner = [Product(f"inputs {i}-{o}", b, o, i, 1) for i, o in layers[1:]]
    return [*acting, *forward, *reversed(weights), *reversed(inner)]


def product_call(product: Product, seed: int) -> Call:
    """The product, with its factors stored as PyTorch's layers store them: weights (outputs, inputs)."""
    generator = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return torch.randn((rows, columns), generator=generator)

    kind = product.name.split()[0]
    left = matrix(product.inner, product.rows).t() if kind == "weights" else matrix(product.rows, product.inner)
    right = (
        matrix(product.columns, product.inner).t()
        if kind in ("act", "forward")
        else matrix(product.inner, product.columns)
    )
    return partial(torch.mm, left, right, out=torch.empty(product.rows, product.columns))


def in_a_row(found: Sequence[Product]) -> Call:
    """All products of `ITERATIONS` iterations; where one is done several times, each time on factors of its own."""
    calls = [product_call(product, 10 * i + k) for i, product in enumerate(found) for k in range(product.times)]

    def run() -> None:
        for _ in range(ITERATIONS):
            for call in calls:
                call()

    return run


def iterations(config: DQNConfig) -> tuple[DQN, Call]:
    """The trainer, past its warm-up and with a full replay, and a call of `ITERATIONS` iterations."""
    trainer = DQN(config, Choices.fast(), cartpole)
    if trainer.choices.loop != "native":
        raise RuntimeError(f"the native loop cannot be used here: loop={trainer.choices.loop!r}.")
    steps = NoLog(ITERATIONS * config.num_envs)
    while trainer.env_steps < config.learning_starts + config.buffer_size:
        trainer.loop.advance(steps)
    return trainer, lambda: trainer.loop.advance(steps)


def measure(job: Iteration, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """A row for each way in which the products are timed, and one for the control."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    trainer, loop = iterations(job.config)
    found = products(job.config, trainer.spec.obs_size, trainer.spec.num_actions)
    paired = time_paired(
        in_a_row(found),
        {LOOP: loop, **{product.name: product_call(product, i) for i, product in enumerate(found)}},
        rounds=rounds,
        min_round_s=command.QUICK_ROUND_S if quick else command.ROUND_S,
        progress=lambda done, total: on_unit(job.name),
    )
    shared = {"seeds": [1], "machine": machine, "meter": meter, "workload": job.name, "quick": quick}
    return [
        new_row(KIND, side=side, **_numbers(paired, times, found), **shared)
        for side, times in product_times(paired, found).items()
    ]


def product_times(paired: Paired, found: Sequence[Product]) -> dict[str, np.ndarray]:
    """Seconds of the products of one iteration in each round, (rounds,), in the ways in which they were timed."""
    alone = sum((product.times * paired.times(product.name) for product in found), np.zeros(paired.rounds))
    row, again = paired.times(BASELINE) / ITERATIONS, paired.times(BASELINE_AGAIN) / ITERATIONS
    return {IN_A_ROW: row, ALONE: alone, AGAIN: again}


def _numbers(paired: Paired, bare: np.ndarray, found: Sequence[Product]) -> Row:
    """`ratio` is the iteration's time over that of the products: above 1 it takes longer."""
    loop = paired.times(LOOP) / ITERATIONS
    control = loop * paired.times(BASELINE_AGAIN) / paired.times(BASELINE)  # the A/A pair of the same rounds
    each = {product.name: paired.median_s(product.name) * 1e6 for product in found}
    return {
        "baseline": "bare products",
        **compare(loop, bare, control).fields(),
        "median_us": float(np.median(loop)) * 1e6,
        "products_us": float(np.median(bare)) * 1e6,
        "products": {product.name: product.times for product in found},
        "product_us": each,
        "flops": sum(2 * p.rows * p.inner * p.columns * p.times for p in found),
        "rounds": paired.rounds,
        "round_times": loop.tolist(),
        "round_products": bare.tolist(),
    }


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        "iteration", "bare products timed", "products", "the iteration", "times their time", "95 % interval", "A/A band",
    )  # fmt: skip
    return aligned(head, [_cells(row) for row in rows], {0, 1}, rows)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["workload"],
        row["side"],
        number(row["products_us"], " us"),
        number(row["median_us"], " us"),
        number(row["ratio"], "x"),
        interval(row["ratio_low"], row["ratio_high"]),
        interval(row["aa_low"], row["aa_high"]),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = command.parse(command.make_parser("iteration", __doc__), arguments)
    chosen = command.choose(jobs(), options.only)

    def each(job: Iteration, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, chosen, len(chosen) * options.rounds, each, format_rows)


if __name__ == "__main__":
    sys.exit(main())
