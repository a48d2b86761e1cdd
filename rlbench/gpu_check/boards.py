"""Steps a second of games in a batch on the GPU, over their number, beside the CPU's fastest form.

Random legal play on 8x8 boards, each step with features, packed ids and restarts, as a training gets them; the GPU plays them as
tensors, the CPU in native code where that can be built. Stretches of both alternate, and the CPU's are timed twice (A/A).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch

from rlbench.envs.matches import make_games
from rlbench.envs.othello import Othello
from rlbench.gpu_check.check import NOT_REACHED, Check
from rlbench.gpu_check.loop import alternating, numbers
from rlbench.random import Purpose, random_bits, to_below
from rlbench.results import Row
from rlbench.timing import synchronize

# The ends first, then between them, so that a section cut short has seen the whole range.
NUM_ENVS, QUICK_NUM_ENVS = (16, 65_536, 1_024, 16_384, 4_096, 128), (16, 64)
STRETCH_S, STEPS = 0.1, 4


class Play:
    """Games that are gone on with at random, a stretch at a time."""

    def __init__(self, num_envs: int, device: torch.device, seed: int, least_s: float) -> None:
        self.games = make_games(Othello(8), num_envs, seed, device)
        self.device, self.seed, self.least_s, self.number = device, seed, least_s, 0
        self.index = torch.arange(num_envs, device=device)
        self.legal = self.games.reset().legal

    def stretch(self) -> float:
        """Seconds a step of one game, over least_s or more."""
        synchronize(self.device)
        start, before = time.perf_counter(), self.number
        while self.number == before or time.perf_counter() - start < self.least_s:
            for _ in range(STEPS):
                self._step()
            synchronize(self.device)
        return (time.perf_counter() - start) / ((self.number - before) * len(self.index))

    def _step(self) -> None:
        bits = random_bits(self.seed, Purpose.ACTION, self.number, self.index)
        place = to_below(bits, self.legal.counts)
        self.legal = self.games.step(self.legal.ids[self.legal.offsets[:-1] + place]).legal
        self.number += 1


def batched_games(check: Check) -> Iterator[Row]:
    """A row for each number of games."""
    for num_envs in QUICK_NUM_ENVS if check.quick else NUM_ENVS:
        name, fields = f"{num_envs:,} games", {"num_envs": num_envs}
        if check.over():
            yield check.absent(name, NOT_REACHED, **fields)
            continue
        check.note(f"{name} at random")
        try:
            yield check.row(name, **fields, **_timed(check, num_envs))
        except Exception as error:  # out of memory at one size does not take the others with it
            yield check.failed(name, error, **fields)


def _timed(check: Check, num_envs: int) -> dict[str, Any]:
    places = [torch.device("cpu"), *([check.device] if check.cuda else [])]
    plays = [Play(num_envs, place, check.seed, 0.0 if check.quick else STRETCH_S) for place in places]
    for play in plays:
        play.stretch()  # warms up
    forms = {f"{place.type}_games": type(p.games).__name__ for place, p in zip(places, plays, strict=True)}
    return {**numbers(alternating(check, [play.stretch for play in plays]), check.cuda), **forms}
