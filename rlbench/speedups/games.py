"""Games: how N of them are stepped.

A game in plain Python is the simplest to write and the slowest: some dozens of microseconds a move, the legal moves that follow
included, whoever plays. All games as tensors take the same few hundred operations whatever N is: slower than Python for one
game, far faster for many. One C call a step has neither cost, and takes eight boards to a vector. A game offers the forms
that it was written in (`rlbench.envs.games`); Othello has all three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench.envs.games import Games
from rlbench.envs.one_by_one_games import OneByOneGames
from rlbench.envs.othello import Othello
from rlbench.speedups.speedup import Speedup, check_equal

STEPS = 8  # a call of a measurement


def one_by_one(game: Any, num_envs: int, seed: int, device: str | torch.device = "cpu") -> Games:
    """A Python loop over games in plain Python."""
    return OneByOneGames(game.one, num_envs, seed, device, game.name)


def batched(game: Any, num_envs: int, seed: int, device: str | torch.device = "cpu") -> Games:
    """All games as tensors."""
    return game.batched(num_envs, seed, device)


def native(game: Any, num_envs: int, seed: int, device: str | torch.device = "cpu") -> Games:
    """All games in one C call, on the CPU."""
    return game.native(num_envs, seed)


VARIANTS = {"one_by_one": one_by_one, "batched": batched, "native": native}
MADE_BY = {"one_by_one": "one", "batched": "batched", "native": "native"}


def make_inputs(size: int, seed: int, device: str) -> tuple[Othello, int, int, str]:
    """Self-play on 8x8 boards."""
    return Othello(), size, seed, device


def bind(variant: Callable[..., Games], inputs: tuple) -> Callable[[], list[Tensor]]:
    """The call goes on for a few steps, with a choice by arithmetic among the legal ids, and hands out what they gave."""
    game, num_envs, seed, device = inputs
    return plays(variant(game, num_envs, seed, device), STEPS)


def plays(games: Games, steps: int) -> Callable[[], list[Tensor]]:
    """A call that plays on: in its t-th step, game i takes legal action number (7 t + 5 i) modulo their count."""
    _, legal = games.reset()
    step, game = torch.arange(steps)[:, None], torch.arange(games.num_envs)
    places = (7 * step + 5 * game).to(games.device)  # (T, N)

    def play() -> list[Tensor]:
        nonlocal legal
        out: list[Tensor] = []
        for place in places:
            ids = legal.ids[legal.offsets[:-1] + place % legal.counts]
            obs, legal, *rest = games.step(ids)
            out += [obs, *legal, *rest]
        return out

    return play


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if env is not None and env.game is None:
        return f"{env.name} is no game of sets of actions; leave this slot out"
    game = None if env is None else env.game
    reason = why_not(variant, game, device)
    if reason is None:
        return None
    others = [name for name in VARIANTS if why_not(name, game, device) is None]
    return f"{reason}; accepted here: {', '.join(others)}" if others else reason


def why_not(variant: str, game: Any, device: torch.device) -> str | None:
    """The reason why a game (None: some game) cannot be stepped so, or None."""
    if variant == "native" and device.type != "cpu":
        return f"native code runs on the CPU, and this runs on {device.type}"
    if game is None:
        return Othello().why_not_native() if variant == "native" else None
    if variant == "native" and hasattr(game, "why_not_native"):
        return game.why_not_native()
    return None if callable(getattr(game, MADE_BY[variant], None)) else f"{game.name} has no `{MADE_BY[variant]}`"


SPEEDUP = Speedup(
    name="games",
    question="How are the games stepped?",
    summary="All games in one call, of tensor operations or of C, instead of a Python loop. Tensors lose where games are few.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check_equal,
    requires=requires,
    sameness="bitwise",
    sizes=(1, 64, 1024),
    size_means=f"games, {STEPS} steps of each",
    workloads=("ppo",),
    claims=("B20",),
)
