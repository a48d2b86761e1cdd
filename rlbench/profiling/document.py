"""A report as one JSON document."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlbench.profiling.tables import tables

if TYPE_CHECKING:
    from rlbench.profiling.report import Report


def document(report: Report) -> dict[str, Any]:
    """All tables, what was run, what watching cost, and the machine. Numbers that are not finite are null."""
    evidence = report.evidence
    counted, trace, run = evidence.counted, evidence.trace, evidence.run
    rows = tables(evidence, report.advice, report.criteria, report.applied)
    rows.pop("device")  # in the document that is the device's name
    made: dict[str, Any] = {
        "what": evidence.what,
        "name": evidence.name,
        "device": evidence.device,
        "error": report.error or None,
        "seconds": evidence.seconds,
        "steps": evidence.steps,
        "updates": evidence.updates,
        "episodes": evidence.episodes,
        "findings": report.findings(),
        **rows,
        "device_use": dataclasses.asdict(evidence.device_use),
        "counting": _pass(counted),
        "trace": _pass(trace) | _device_part(trace),
        "overhead": None if evidence.overhead is None else dataclasses.asdict(evidence.overhead),
        "peaks": _as_dict(evidence.peaks),
        "twins": _as_dict(evidence.twins),
        "settings": None if run is None else _settings(run),
        "machine": dict(evidence.machine),
    }
    return clean(made)


def _pass(record: Any) -> dict[str, Any]:
    """How long a pass was and how much slower; "not_measured" without it."""
    if record is None:
        return {"not_measured": True}
    return {"steps": record.steps, "seconds": record.seconds, "slowdown": record.slowdown}


def _device_part(trace: Any) -> dict[str, Any]:
    names = ("launches", "kernel_s", "busy", "sync_s")
    return {name: getattr(trace, name, None) for name in names}


def _as_dict(record: Any) -> dict[str, Any] | None:
    if record is None:
        return None
    return {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}


def _settings(run: Any) -> dict[str, Any]:
    choices = run.choices.in_use(run.config, run.device, run.source)
    return {"trainer": run.trainer, "config": dataclasses.asdict(run.config), "choices": choices}


def clean(value: Any) -> Any:
    """What JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [clean(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "tolist"):
        return clean(value.tolist())
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
