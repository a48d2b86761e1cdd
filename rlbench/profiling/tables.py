"""A report's tables: plain rows for JSON and DataFrames."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice, Applied, Criterion
from rlbench.profiling.records import Place

Row = dict[str, Any]
COLUMNS = {
    "phases": ("name", "seconds", "share", "calls", "per_step_us", "cpu_s", "part_of"),
    "lines": ("file", "line", "function", "source", "whose", "own", "total", "phase"),
    "syncs": ("file", "line", "call", "count", "per_step", "wait_s", "phase", "source", "function", "whose"),
    "op_lines": ("file", "line", "function", "source", "whose", "phase", "ops", "per_step"),
    "operators": ("name", "calls", "self_s", "device_s"),
    "copies": ("direction", "count", "bytes", "seconds", "share", "pinned"),
    "products": ("phase", "batch", "inputs", "outputs", "calls", "learning", "convolution"),
    "work": ("phase", "flops", "bytes", "ops", "dtype"),
    "light": ("phase", "flops", "bytes", "ops", "seconds", "floor_s", "bound", "share"),
    "advice": (
        "name",
        "kind",
        "text",
        "evidence",
        "instead",
        "predicted_gain",
        "bound",
        "metric",
        "places",
        "choice",
        "notebook",
    ),
    "criteria": ("name", "asked", "found", "verdict", "note"),
    "threads": ("threads", "seconds_a_step", "now"),
    "device": ("name", "value"),
    "notes": ("note",),
    "applied": ("advice", "choice", "predicted", "ratio", "low", "high", "aa_low", "aa_high", "verdict"),
}


def tables(
    evidence: Evidence, advice: Iterable[Advice], criteria: Iterable[Criterion], applied: Iterable[Applied] = ()
) -> dict[str, list[Row]]:
    """Rows of every table, each with the columns of `COLUMNS`."""
    counted, trace = evidence.counted, evidence.trace
    rows: dict[str, Iterable[Any]] = {
        "phases": [_phase(phase, evidence) for phase in evidence.phases],
        "lines": evidence.lines,
        "syncs": counted.syncs if counted else (),
        "op_lines": counted.op_lines if counted else (),
        "operators": trace.operators if trace else (),
        "copies": trace.copies if trace else (),
        "products": counted.products if counted else (),
        "work": counted.work if counted else (),
        "light": evidence.light,
        "advice": advice,
        "criteria": criteria,
        "threads": _threads(evidence),
        "device": [{"name": name, "value": value} for name, value in dataclasses.asdict(evidence.device_use).items()],
        "notes": [{"note": note} for note in evidence.notes],
        "applied": applied,
    }
    return {
        name: [{column: row.get(column) for column in COLUMNS[name]} for row in map(flat, of)]
        for name, of in rows.items()
    }


def flat(record: Any) -> Row:
    """A record's fields; those of its place among them."""
    if isinstance(record, Mapping):
        return dict(record)
    row = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    place = row.pop("place", None)
    if isinstance(place, Place):
        row |= dataclasses.asdict(place)
    if "places" in row:
        row["places"] = [dataclasses.asdict(each) for each in row["places"]]
    if isinstance(row.get("choice"), Mapping):
        row["choice"] = dict(row["choice"])
    return row


def _phase(phase: Any, evidence: Evidence) -> Row:
    return flat(phase) | {
        "per_step_us": phase.seconds / evidence.steps * 1e6 if evidence.steps and not phase.part_of else None
    }


def _threads(evidence: Evidence) -> list[Row]:
    probe = evidence.threads
    if probe is None:
        return []
    return [{"threads": n, "seconds_a_step": s, "now": n == probe.now} for n, s in sorted(probe.seconds.items())]
