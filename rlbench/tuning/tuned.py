"""What a search found, and its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlbench.machine import Machine, StealMeter
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.tuning.candidates import Space
from rlbench.tuning.race import Standing

FIELDS = ("rate", "ratio", "low", "high", "aa_low", "aa_high", "rounds", "first_s", "compile_s")


@dataclass
class Tuned:
    """What was found.

    Attributes:
        choices, threads, settings: the fastest that learns the same; settings are those that differ from the run's.
        used: the slots in use, with their variants.
        config: of the run, without these settings.
        final: against plain() on the run's own threads, from the last race.
        distance: of its weights from plain()'s after a few updates, as a share of how far plain() moved them.
        standings: of all races, in order; ratios are against the first of each race.
        returns: of plain() and of the winner, each after the same env steps with one seed; None where there was no time for it.
        return_steps: these env steps.
        left_out: candidates that were not tried, or failed, and why.
        rejected: those that did not learn what plain() learns: label and distance.
    """

    choices: Choices
    threads: int
    settings: Mapping[str, Any]
    used: Mapping[str, str]
    config: Any
    device: str
    final: Standing
    distance: float
    standings: list[Standing]
    returns: tuple[float, float] | None = None
    return_steps: int = 0
    left_out: list[str] = field(default_factory=list)
    rejected: list[tuple[str, float]] = field(default_factory=list)
    budget_s: float = 0.0
    seconds: float = 0.0
    interrupted: bool = False
    rows: list[Row] = field(default_factory=list)


def row_of(standing: Standing, space: Space, race: int, first: Standing, machine: Machine, meter: StealMeter) -> Row:
    """A candidate's row.

    Args:
        race: the number of the race, from 0.
        first: of the race, to which ratios are.
        machine, meter: as for `new_row`.
    """
    candidate = standing.candidate
    fields = {
        "race": race,
        "label": candidate.label,
        "against": first.candidate.label,
        "verdict": standing.verdict,
        **{name: getattr(standing, name) for name in FIELDS},
        "dropped": standing.dropped,
        "not_measured": standing.why_not or None,
        "torch_threads": candidate.threads,
        "choices": space.in_use(candidate.choices),
        "changed": {name: str(value) for name, value in candidate.changed.items()},
    }
    return new_row("tune", device=space.device, seeds=[space.config.seed], machine=machine, meter=meter, **fields)
