"""What follows from the evidence, as records: advice, criteria, suggestions that were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlbench.profiling.records import Place


@dataclass(frozen=True)
class Advice:
    """What to do, or what not to do.

    Attributes:
        name: of the rule, such as "env_waits".
        kind: "fault" (time that buys nothing), "option" (another way to build it) or "against" (what would slow this run).
        text: what is the matter, in a sentence.
        evidence: the numbers that say so.
        places: the reader's own lines.
        instead: what to write instead, as code or a sentence.
        predicted_gain: times as fast in `metric`, 1.0 where it costs nothing here; None where nothing predicts it.
        bound: no change of this part alone can exceed it (Amdahl); None where it is no part (a setting).
        metric: what the gain is counted in.
        choice: slots and variants of our trainers that do it, or settings of the config; empty where there is none.
        notebook: the number of the notebook that explains it, such as "05"; "" where there is none.
    """

    name: str
    kind: str
    text: str
    evidence: str
    instead: str
    predicted_gain: float | None
    bound: float | None
    places: tuple[Place, ...] = ()
    metric: str = "steps a second"
    choice: Mapping[str, Any] = field(default_factory=dict)
    notebook: str = ""


@dataclass(frozen=True)
class Criterion:
    """`verdict` is "passed", "failed" or "not measured"; `note` says where the criterion itself misleads."""

    name: str
    asked: str
    found: str
    verdict: str
    note: str


@dataclass(frozen=True)
class Applied:
    """A suggestion measured in pairs: the ratio and its 95 % interval, beside what was predicted."""

    advice: str
    choice: Mapping[str, Any]
    predicted: float | None
    ratio: float
    low: float
    high: float
    aa_low: float
    aa_high: float
    verdict: str
