"""Games alone: random legal play of 8x8 Othello, 4,096 games at once, beside pgx's.

A call plays 64 plies of every game; games that end start anew within the time, and random numbers are drawn within it. Ours comes
with moves as masks of squares, and with the packed ids of all legal actions worked out in every state, each in native code and
as compiled tensors. A ratio is the time of pgx at its best (`benchmarks/pgx_othello.py`) over ours; beside it stands the one to
pgx as its manual has it. `ended` are episodes in a thousand steps: all sides play the same game.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks import command, pgx_othello
from benchmarks.targets import cores, judged, target_cell, unjudged
from benchmarks.text import aligned, interval, number
from rlbench import compile as compiling
from rlbench.envs.othello import Othello
from rlbench.envs.othello_batch import START, after, random_step
from rlbench.envs.othello_batch_ids import ids_of_rows, packed_ids, random_packed_step, with_passes
from rlbench.machine import StealMeter, describe
from rlbench.native.othello import MaskGames
from rlbench.results import Row, new_row
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, compare, time_paired

KIND = "benchmark-othello-steps"
PEER, PEER_AGAIN, MANUAL = "pgx, at its best", "pgx, at its best, again", "pgx, as in its manual"
MASKS, PACKED = 40.0, 10.0  # times as fast as the peer, at least
STEPS, SEED = 64, 1

Call = Callable[[], int]  # plays on, and gives the episodes that ended


@dataclass(frozen=True)
class Playing:
    games: int

    @property
    def name(self) -> str:
        return f"{self.games:,} games"


JOBS = (Playing(4_096),)


def native_call(games: int, packed: bool) -> Call:
    """All plies in one C call; with `packed`, ids and offsets are written before every ply."""
    played, calls = MaskGames(games), iter(range(1, 1 << 62))
    return lambda: played.play_at_random(STEPS, next(calls), packed).episodes


def drawn(games: int, generator: torch.Generator) -> torch.Tensor:
    """32 random bits for each ply of each game, (STEPS, N) int64."""
    return torch.randint(2**32, (STEPS, games), generator=generator)


def compiled_masks(games: int) -> Call:
    step, generator = torch.compile(random_step, fullgraph=True), torch.Generator().manual_seed(SEED)
    state = tuple(torch.full((games,), squares) for squares in START[8])

    @torch.inference_mode()
    def play() -> int:
        nonlocal state
        ended = torch.zeros((), dtype=torch.int64)
        for bits in drawn(games, generator):
            *state, over = step(*state, bits, 8)
            ended += over.sum()
        return int(ended)

    return play


def compiled_packed(games: int) -> Call:
    parts = torch.compile(after, fullgraph=True), torch.compile(ids_of_rows, dynamic=True, fullgraph=True)
    generator = torch.Generator().manual_seed(SEED)
    mine, theirs, moves = (torch.full((games,), squares) for squares in START[8])
    state = mine, theirs, packed_ids(mine, theirs, with_passes(mine, moves), 8)

    @torch.inference_mode()
    def play() -> int:
        nonlocal state
        ended = torch.zeros((), dtype=torch.int64)
        for bits in drawn(games, generator):
            *state, over = random_packed_step(*state, bits, 8, *parts)
            ended += over.sum()
        return int(ended)

    return play


def whole_step(games: int) -> Call:
    """What PPO steps in native code: ids are taken, and legal ids, features, rewards and ends are given as tensors."""
    played, generator = Othello().native(games, SEED), torch.Generator().manual_seed(SEED)
    _, legal = played.reset()

    def play() -> int:
        nonlocal legal
        ended = torch.zeros((), dtype=torch.int64)
        for bits in drawn(games, generator):
            step = played.step(legal.ids[legal.offsets[:-1] + ((bits * legal.counts) >> 32)])
            legal, ended = step.legal, ended + step.terminated.sum()
        return int(ended)

    return play


def our_calls(games: int) -> dict[str, tuple[Call, float | None]]:
    """The sides that run here, each with its target."""
    calls: dict[str, tuple[Call, float | None]] = {}
    if Othello().why_not_native() is None:
        calls["masks, native"] = native_call(games, False), MASKS
        calls["packed ids, native"] = native_call(games, True), PACKED
        calls["packed ids and features, native"] = whole_step(games), None
    if compiling.why_not("cpu") is None:
        compiling.use_cache_folder()
        calls["masks, compiled tensors"] = compiled_masks(games), MASKS
        calls["packed ids, compiled tensors"] = compiled_packed(games), PACKED
    return calls


def measure(job: Playing, rounds: int, quick: bool, on_unit: Callable[[str], None]) -> list[Row]:
    """A row a side."""
    machine, meter = describe(steal_interval_s=0), StealMeter()
    ours = our_calls(job.games)
    peer, manual = (make(job.games, STEPS, SEED) for make in (pgx_othello.at_its_best, pgx_othello.as_in_manual))
    calls = {MANUAL: manual, **{name: call for name, (call, _) in ours.items()}}
    ended = {name: ended_of(call, job.games) for name, call in {PEER: peer, **calls}.items()}
    paired = time_paired(
        peer,
        calls,
        rounds=rounds,
        min_round_s=command.QUICK_ROUND_S if quick else command.ROUND_S,
        progress=lambda done, total: on_unit(job.name),
    )
    names = {PEER: BASELINE, **{name: name for name in calls}, PEER_AGAIN: BASELINE_AGAIN}
    targets = {name: target for name, (_, target) in ours.items()}
    shared = {"seeds": [SEED], "machine": machine, "meter": meter, "workload": job.name, "quick": quick}
    return [
        new_row(
            KIND,
            side=side,
            peer=f"{pgx_othello.PACKAGE} {command.version(pgx_othello.PACKAGE)} on jax {command.version('jax')}",
            cores=cores(),
            ended=ended.get(side),
            **_numbers(paired, name, job.games, targets.get(side)),
            **shared,
        )
        for side, name in names.items()
    ]


def ended_of(call: Call, games: int) -> float:
    """Episodes that end in a step of a game, over two calls that follow two others: games are about 60 plies long."""
    for _ in range(2):
        call()
    return sum(call() for _ in range(2)) / (2 * STEPS * games)


def _numbers(paired: Paired, name: str, games: int, target: float | None) -> Row:
    """`ratio` is the time of the peer at its best over the side's; `manual_ratio` that of the peer as in its manual."""
    times = paired.times(name)
    ratio = unjudged("baseline") if name == BASELINE else judged(paired.ratio(name), target)
    manual = paired.times(MANUAL)
    control = manual * paired.times(BASELINE_AGAIN) / paired.times(BASELINE)
    beside = compare(manual, times, control)
    plies = games * STEPS
    return {
        "baseline": PEER,
        **ratio,
        "manual_ratio": None if name == MANUAL else beside.ratio,
        "manual_low": None if name == MANUAL else beside.low,
        "manual_high": None if name == MANUAL else beside.high,
        "steps_per_s": plies / paired.median_s(name),
        "first_call_s": paired.first_call_s.get(name),
        "games": games,
        "rounds": paired.rounds,
        "round_times": (times / plies).tolist(),  # seconds a step of one game
    }


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        "play", "side", "steps/s", "ratio to pgx", "95 % interval", "A/A band", "target", "to its manual's form", "95 % interval",
        "ended", "verdict",
    )  # fmt: skip
    return aligned(head, [_cells(row) for row in rows], {0, 1, 6, len(head) - 1}, rows)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["workload"],
        row["side"],
        number(row["steps_per_s"]),
        number(row["ratio"], "x"),
        interval(row["ratio_low"], row["ratio_high"]),
        interval(row["aa_low"], row["aa_high"]),
        target_cell(row),
        number(row["manual_ratio"], "x"),
        interval(row["manual_low"], row["manual_high"]),
        "-" if row["ended"] is None else f"{1000 * row['ended']:.1f} ‰",
        row["verdict"],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = command.parse(command.make_parser("othello_steps", __doc__), arguments, pgx_othello.PACKAGE)
    chosen = command.choose(JOBS, options.only)

    def each(job: Playing, on_unit: Callable[[str], None]) -> list[Row]:
        return measure(job, options.rounds, options.quick, on_unit)

    return command.run(options, chosen, len(chosen) * options.rounds, each, format_rows)


if __name__ == "__main__":
    sys.exit(main())
