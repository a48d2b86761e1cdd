"""One run of the check: what all its sections share, the rows so far, and the clock of the section at work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from rlbench.machine import Machine, StealMeter
from rlbench.results import Row, new_row

KIND = "gpu-check"
NOT_REACHED = "cut short: the time of this section was up"


class Uninstalled(RuntimeError):
    """Something that a bare machine need not have."""


@dataclass
class Check:
    """The state of a run.

    Attributes:
        device: CUDA, or the CPU where there is none.
        quick: the least of everything, to see that it works.
        price: of an hour of this GPU; None where not asked.
        cpu_price: of an hour of the CPU that it is held against; None: the same.
        rows: what was found so far, by all sections.
        section: the name of the section at work.
        deadline: `time.perf_counter()` at which it has to come to its end.
        note: told what is being done now.
    """

    device: torch.device
    machine: Machine
    quick: bool = False
    seed: int = 1
    price: float | None = None
    cpu_price: float | None = None
    rows: list[Row] = field(default_factory=list)
    section: str = ""
    deadline: float = float("inf")
    note: Callable[[str], None] = lambda text: None
    _meter: StealMeter = field(default_factory=StealMeter)

    @property
    def cuda(self) -> bool:
        return self.device.type == "cuda"

    def over(self) -> bool:
        """Whether the section's time is up."""
        return time.perf_counter() >= self.deadline

    def of(self, section: str) -> list[Row]:
        """The rows of a section so far."""
        return [row for row in self.rows if row["section"] == section]

    def row(self, name: str, **fields: Any) -> Row:
        """A row of the section at work. `same`, `verdict`, `not_measured` and `error` are there in all of them."""
        fields = {"same": None, "verdict": None, "not_measured": None, "error": None, **fields}
        meter, self._meter = self._meter, StealMeter()
        own = {"section": self.section, "name": name, "quick": self.quick}
        return new_row(
            KIND, device=self.device, seeds=[self.seed], machine=self.machine, meter=meter, **{**own, **fields}
        )

    def absent(self, name: str, reason: str, **fields: Any) -> Row:
        """A row that says why there is no result."""
        return self.row(name, **{"verdict": "not measured", "not_measured": reason, **fields})

    def failed(self, name: str, error: BaseException, **fields: Any) -> Row:
        """A row that says what went wrong."""
        return self.row(name, **{"verdict": "failed", "error": described(error), **fields})


def described(error: BaseException) -> str:
    """The kind of an error and its message."""
    return f"{type(error).__name__}: {error}".strip()


def missing_package(error: BaseException | str | None) -> str | None:
    """The reason why there is no result where an import failed, or None for any other error."""
    text = error if isinstance(error, str) else "" if error is None else described(error)
    name = text.partition("No module named ")[2].split("'")
    return f"needs {name[1].split('.')[0]}, which is not installed here" if len(name) > 1 else None


def on_cpu(outcome: Any) -> Any:
    """The outcome of a call with all its tensors on the CPU; containers keep their type."""
    if isinstance(outcome, torch.Tensor):
        return outcome.detach().cpu()
    if isinstance(outcome, Mapping):
        return {key: on_cpu(value) for key, value in outcome.items()}
    if isinstance(outcome, tuple) and hasattr(outcome, "_fields"):
        return type(outcome)(*(on_cpu(getattr(outcome, name)) for name in outcome._fields))
    if isinstance(outcome, list | tuple):
        return type(outcome)(on_cpu(value) for value in outcome)
    return outcome


def tensors(outcome: Any) -> Iterator[torch.Tensor]:
    """The tensors of an outcome, in order."""
    if isinstance(outcome, torch.Tensor):
        yield outcome
    elif isinstance(outcome, Mapping):
        for value in outcome.values():
            yield from tensors(value)
    elif isinstance(outcome, list | tuple):
        for value in outcome:
            yield from tensors(value)
