"""The sections in order, each within its share of the time; what one finds is handed on row by row."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from rlbench.gpu_check.boards import batched_games
from rlbench.gpu_check.busy import gpu_use
from rlbench.gpu_check.check import Check
from rlbench.gpu_check.crossover import crossover
from rlbench.gpu_check.loop import fused_loop
from rlbench.gpu_check.paired import paired_slots
from rlbench.gpu_check.price import prices
from rlbench.gpu_check.same_envs import same_envs
from rlbench.gpu_check.same_games import same_games
from rlbench.gpu_check.same_ppo import same_ppo
from rlbench.gpu_check.same_slots import same_slots
from rlbench.gpu_check.same_training import same_training
from rlbench.gpu_check.sets import action_sets
from rlbench.machine import describe, resolve_device
from rlbench.progress import Progress
from rlbench.results import Row

CHECKS = ("envs", "games", "training", "same", "ppo")  # sections that compare
PLANNED = 0.9  # of the time; the rest is kept for what is being compiled when the time is up


@dataclass(frozen=True)
class Section:
    """A part of the check.

    Attributes:
        name: in the rows.
        question: for people.
        share: of the time, in parts of all shares.
        run: the rows, one after another, ended by itself when `check.over()`.
    """

    name: str
    question: str
    share: float
    run: Callable[[Check], Iterator[Row]]


SECTIONS = (
    Section("envs", "Do batch environments step on CUDA as on the CPU?", 2, same_envs),
    Section("games", "Do games in a batch step on CUDA as on the CPU?", 3, same_games),
    Section("training", "Does a training on CUDA lose as one on the CPU does?", 12, same_training),
    Section("same", "Does every variant give the CPU's answer on CUDA?", 24, same_slots),
    Section("ppo", "Does a training of PPO on CUDA go as one on the CPU does?", 26, same_ppo),
    Section("loop", "How many env steps a second does the fused loop do?", 28, fused_loop),
    Section("boards", "How many steps a second do games in a batch do?", 12, batched_games),
    Section("use", "What does the GPU do meanwhile?", 18, gpu_use),
    Section("crossover", "From which batch and width on is the GPU faster?", 10, crossover),
    Section("sets", "How fast are states with different numbers of actions evaluated?", 22, action_sets),
    Section("slots", "Which optimizations are faster on this device?", 18, paired_slots),
    Section("price", "What does a million steps cost, and from where does renting pay?", 0, prices),
)


def gpu_check(
    *,
    device: str | torch.device = "auto",
    minutes: float = 7.0,
    quick: bool = False,
    price: float | None = None,
    cpu_price: float | None = None,
    seed: int = 1,
    progress: bool | None = None,
    on_row: Callable[[Row], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[Row]:
    """Check and measure a GPU; on a machine without one, what the CPU alone can tell.

    Args:
        device: "auto", "cpu", "cuda" or "cuda:N".
        minutes: for all sections together, a tenth of them in reserve. A section gets its share of what is left; one that is
            cut short has rows that say so. What is being compiled when the time is up is finished.
        quick: the least of everything, to see that it works.
        price: of an hour of this GPU, in any currency: adds the section on costs.
        cpu_price: of an hour of the CPU; the same where left out.
        progress: False hides it.
        on_row: gets each row as soon as it is known.
        should_stop: asked between rows; ends the check.

    Returns:
        Rows of kind "gpu-check" with section, name, same, verdict, not_measured, error, quick, and the section's own fields.

    Raises:
        ValueError: for an unknown device, or a number that is not above 0.
    """
    for name, number in (("minutes", minutes), ("price", price), ("cpu_price", cpu_price)):
        if number is not None and not 0 < number < float("inf"):
            raise ValueError(f"{name}={number}: accepted are numbers above 0.")
    seconds = 60 * minutes * PLANNED
    end = time.perf_counter() + seconds
    where = resolve_device(device)
    check = Check(where, describe(steal_interval_s=0), quick, seed, price, cpu_price)
    with Progress(round(seconds), "gpu-check", "s", progress) as bar:
        pace = _Pace(bar, end)
        check.note = pace.note
        for number, section in enumerate(SECTIONS):
            left = sum(each.share for each in SECTIONS[number:])
            now = time.perf_counter()
            check.section = section.name
            check.deadline = now + max(0.0, end - now) * section.share / left if left else end
            for row in _rows_of(section, check):
                check.rows.append(row)
                if on_row is not None:
                    on_row(row)
                pace.note(str(row["name"]))
                if should_stop is not None and should_stop():
                    return check.rows
            _free(where)
    return check.rows


def _rows_of(section: Section, check: Check) -> Iterator[Row]:
    """The section's rows; its own failure is the last of them."""
    try:
        yield from section.run(check)
    except Exception as error:  # the other sections go on
        yield check.failed(section.question, error, same=False if section.name in CHECKS else None)


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


class _Pace:
    """Progress in seconds of the time there is."""

    def __init__(self, bar: Progress, end: float) -> None:
        self.bar, self.end = bar, end

    def note(self, text: str) -> None:
        passed = self.bar.total - max(0.0, self.end - time.perf_counter())
        self.bar.advance(max(0, int(passed) - self.bar.done), text)


def has_failed(rows: list[Row]) -> bool:
    """Whether a check found a difference, or something broke."""
    return any(row["same"] is False or row["error"] for row in rows)
