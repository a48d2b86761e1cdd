"""Do games in a batch step on CUDA as they do on the CPU?

Boards are whole numbers, and so are ids, so that every position, set, reward and end has to be equal bit by bit, openings and
replies of opponents included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from rlbench.envs.bandit import IdBandit
from rlbench.envs.othello import Othello
from rlbench.gpu_check.check import NOT_REACHED, Check, described, on_cpu
from rlbench.measure import NO_CUDA
from rlbench.results import Row
from rlbench.speedups.games import plays

GAMES, STEPS, QUICK_STEPS = 64, 100, 10
FIELDS = ("obs", "ids", "offsets", "reward", "terminated", "truncated", "next_obs")  # of a step, as `plays` gives them


def rules() -> dict[str, Any]:
    """What is played, by name."""
    found = [
        Othello(8),
        Othello(6, opponent="greedy", opening_plies=6),
        Othello(8, "discs", opponent="random", opening_plies=4),
        Othello(4, opponent="alpha_beta_2", opening_plies=2),
    ]
    named = {f"{game.name}, {game.opponent or 'self-play'}, {game.opening_plies} plies before": game for game in found}
    return named | {"IdBandit": IdBandit(noise=0.1)}


def same_games(check: Check) -> Iterator[Row]:
    """A row for each of `rules`."""
    steps = QUICK_STEPS if check.quick else STEPS
    for name, game in rules().items():
        fields: dict[str, Any] = {"num_envs": GAMES, "steps": steps}
        if not check.cuda or check.over():
            yield check.absent(name, NOT_REACHED if check.cuda else NO_CUDA, **fields)
            continue
        check.note(f"{name}, {steps} steps on CPU and CUDA")
        try:
            compare_games(game, check.device, steps, check.seed)
            yield check.row(name, same=True, verdict="same", **fields)
        except AssertionError as error:
            yield check.row(name, same=False, verdict="NOT the same", error=described(error), **fields)
        except Exception as error:  # a finding about this game, not the end of the section
            yield check.failed(name, error, same=False, **fields)


def compare_games(game: Any, device: torch.device, steps: int, seed: int) -> None:
    """Play on both with the same choices. Raises AssertionError that names step and field where they differ."""
    expected, found = (
        on_cpu(plays(game.batched(GAMES, seed, where), steps)()) for where in (torch.device("cpu"), device)
    )
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        step, field = divmod(number, len(FIELDS))
        where = f"step {step}, {FIELDS[field]}"
        torch.testing.assert_close(other, one, rtol=0, atol=0, msg=lambda text, where=where: f"{where}: {text}")
