"""All that a profile measured, in one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlbench.profiling.limits import Light, Overhead, Peaks, Twins
from rlbench.profiling.records import Counted, DeviceUse, HotLine, PhaseTime, ThreadProbe, Trace


@dataclass(frozen=True)
class TrainerRun:
    """The trainer behind a profile of ours; advice names its Choices."""

    trainer: str
    config: Any
    choices: Any
    source: Any
    device: str


@dataclass(frozen=True)
class Evidence:
    """All that was measured; `advise` and `criteria` read nothing else.

    Attributes:
        what: "script", "block", "dqn" or "ppo".
        seconds, steps, updates, episodes: of the clocked pass: wall seconds, env steps called, optimizer steps, resets.
    """

    what: str
    name: str
    device: str
    seconds: float
    steps: int
    updates: int
    episodes: int
    phases: tuple[PhaseTime, ...]
    lines: tuple[HotLine, ...] = ()
    counted: Counted | None = None
    trace: Trace | None = None
    device_use: DeviceUse = field(default_factory=DeviceUse)
    threads: ThreadProbe | None = None
    peaks: Peaks | None = None
    light: tuple[Light, ...] = ()
    twins: Twins | None = None
    overhead: Overhead | None = None
    run: TrainerRun | None = None
    machine: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def share(self, *names: str) -> float:
        """Share of the wall time of these phases together, in the run itself."""
        return sum(phase.share for phase in self.phases if phase.name in names and not phase.part_of)
