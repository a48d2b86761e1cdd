"""The rows as tables for a terminal, a section each, and first of all whether anything is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rlbench.gpu_check.run import CHECKS, SECTIONS
from rlbench.results import Row

# Columns of a section's table: heading, field, format.
COLUMNS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "loop": (("envs", "num_envs", ",d"), ("CPU sps", "cpu_sps", ",.0f"), ("GPU sps", "gpu_sps", ",.0f")),
    "boards": (("games", "num_envs", ",d"), ("CPU steps/s", "cpu_sps", ",.0f"), ("GPU steps/s", "gpu_sps", ",.0f")),
    "use": (
        ("", "name", ""),
        ("busy", "busy_share", ".1%"),
        ("transfers", "transfer_share", ".1%"),
        ("GPU us/iteration", "gpu_us", ",.0f"),
        ("wall us/iteration", "wall_us", ",.0f"),
        ("peak MB", "peak_mb", ",.0f"),
        ("of its memory", "memory_share", ".1%"),
    ),
    "crossover": (
        ("batch", "batch_size", ",d"),
        ("width", "hidden", ",d"),
        ("CPU us", "cpu_us", ",.0f"),
        ("threads", "cpu_threads", "d"),
        ("GPU us", "gpu_us", ",.0f"),
    ),
    "slots": (
        ("slot", "slot", ""),
        ("variant", "variant", ""),
        ("size", "size", ",d"),
        ("a call, us", "median_us", ",.1f"),
    ),
    "sets": (
        ("evaluate", "variant", ""),
        ("states", "size", ",d"),
        ("a call, us", "median_us", ",.1f"),
    ),
    "price": (
        ("envs", "num_envs", ",d"),
        ("GPU, a million steps", "cost", ".3g"),
        ("CPU, a million steps", "cpu_cost", ".3g"),
        ("CPU is cheaper below, an hour", "cpu_pays_below", ".3g"),
    ),
}
RATIO = (("ratio", "ratio", ".2f"), ("low", "ratio_low", ".2f"), ("high", "ratio_high", ".2f"))
WITH_RATIO = ("loop", "boards", "crossover", "sets", "slots")


def summary(rows: Sequence[Row]) -> str:
    """All sections as text."""
    parts = []
    for section in SECTIONS:
        found = [row for row in rows if row["section"] == section.name]
        if found:
            body = _checked(found) if section.name in CHECKS else _table(section.name, found)
            parts.append(f"{section.question}\n{_indented(body)}")
    wrong = sum(row["same"] is False for row in rows)
    broken = sum(row["same"] is not False and bool(row["error"]) for row in rows)
    parts.append(f"{_count(wrong, 'check')} failed, {_count(broken, 'measurement')} broke, {_count(len(rows), 'row')}.")
    return "\n\n".join(parts) + "\nfewer than 20 rounds: do not cite ratios"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _checked(rows: Sequence[Row]) -> str:
    """How many agree; every one that does not by name; the reasons of those that were not checked."""
    right = [row for row in rows if row["same"] is True]
    checked = sum(row["same"] is not None for row in rows)
    rounding = sum("rounding" in row["verdict"] for row in right)
    lines = [f"{len(right)} of {checked} agree{f', {rounding} of them but for rounding' if rounding else ''}"]
    lines = lines if checked else []
    lines += [
        f"{row['name']}{_size(row)}: {row['verdict']}: {_first(row['error'])}" for row in rows if row["same"] is False
    ]
    return "\n".join([*lines, *_reasons(rows)])


def _size(row: Row) -> str:
    return f", size {row['size']:,}" if row.get("size") else ""


def _first(text: Any) -> str:
    return " ".join(str(text).split())[:200]


def _reasons(rows: Sequence[Row]) -> list[str]:
    """Each reason for not measuring once, with what it applies to."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["not_measured"]:
            reasons.setdefault(_first(row["not_measured"]), []).append(str(row["name"]))
    return [f"{reason}: {_listed(list(dict.fromkeys(names)))}" for reason, names in reasons.items()]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {len(names) - 5} more"


def _table(section: str, rows: Sequence[Row]) -> str:
    columns = COLUMNS[section] + (RATIO if section in WITH_RATIO else ())
    shown = [
        row for row in rows if any(_number(row.get(field)) for _, field, kind in columns if kind not in ("", "d", ",d"))
    ]
    lines = []
    if shown:
        order = sorted(shown, key=lambda row: row["num_envs"]) if section in ("loop", "boards", "price") else shown
        body = [
            [*(_cell(row.get(field), kind) for _, field, kind in columns), str(row["verdict"] or "")] for row in order
        ]
        lines = _aligned([[*(head for head, _, _ in columns), "verdict"], *body])
    broken = [f"{row['name']}{_size(row)}: {row['verdict']}: {_first(row['error'])}" for row in rows if row["error"]]
    said = [str(row["verdict"]) for row in rows if row["name"] == "renting pays" and not row["not_measured"]]
    return "\n".join([*lines, *said, *broken, *_reasons(rows)])


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _cell(value: Any, kind: str) -> str:
    if not kind:
        return "-" if value is None else str(value)
    return format(value, kind) if _number(value) else "-"


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def document(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """For programs: the rows, and whether every check passed."""
    return {"rows": list(rows), "passed": not any(row["same"] is False for row in rows)}
