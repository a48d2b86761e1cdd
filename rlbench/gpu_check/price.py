"""What a million env steps cost on this GPU at a price an hour, and from which size renting it pays.

cost of a million steps = price / 3600 * 1e6 / sps. The CPU's is taken at `cpu_price` an hour, the same price where none was
given; `cpu_pays_below` is the price of the CPU below which the CPU is the cheaper one, whatever it really costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rlbench.gpu_check.check import Check
from rlbench.measure import NO_CUDA
from rlbench.results import Row

NO_LOOP = "no number of environments was timed on both"


def cost_per_million(price: float, sps: float) -> float:
    """Of a million steps, in the price's currency."""
    return price / 3600 * 1e6 / sps


def prices(check: Check) -> Iterator[Row]:
    """A row for each number of environments that the loop's section has timed, and one for where renting pays."""
    if check.price is None:
        return
    cpu_price = check.price if check.cpu_price is None else check.cpu_price
    shared: dict[str, Any] = {"price": check.price, "cpu_price": cpu_price}
    timed = [row for row in check.of("loop") if row.get("gpu_sps")]
    costs: list[tuple[int, float, float]] = []
    for row in sorted(timed, key=lambda row: row["num_envs"]):
        cost, cpu_cost = cost_per_million(check.price, row["gpu_sps"]), cost_per_million(cpu_price, row["cpu_sps"])
        costs.append((row["num_envs"], cost, cpu_cost))
        numbers = {"num_envs": row["num_envs"], "cost": cost, "cpu_cost": cpu_cost}
        below = check.price * row["cpu_sps"] / row["gpu_sps"]
        yield check.row(
            f"{row['num_envs']:,} envs", **shared, **numbers, cpu_pays_below=below, verdict=_cheaper(row, costs[-1])
        )
    if not costs:
        yield check.absent("renting pays", NO_LOOP if check.cuda else NO_CUDA, **shared)
        return
    pays = pays_from(costs)
    verdict = "renting pays at no size that was timed" if pays is None else f"renting pays from {pays:,} envs on"
    yield check.row("renting pays", **shared, pays_from=pays, verdict=verdict)


def _cheaper(row: Row, cost: tuple[int, float, float]) -> str:
    return "the GPU is cheaper" if cost[1] < cost[2] else "the CPU is cheaper"


def pays_from(costs: Sequence[tuple[int, float, float]]) -> int | None:
    """The smallest size from which on the GPU's cost stays below the CPU's; None where it does not at the largest.

    `costs`: (size, cost on the GPU, cost on the CPU).
    """
    found = None
    for size, gpu, cpu in sorted(costs, reverse=True):
        if gpu >= cpu:
            break
        found = size
    return found
