"""A report for a terminal: the answer first, then what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.profiling.advice.gains import duration
from rlbench.profiling.answer import costs, parts_from, rate, subject
from rlbench.profiling.findings import Advice
from rlbench.profiling.records import TITLES, PhaseTime
from rlbench.profiling.text_parts import BAR, bar, fill, shortened, titled, where
from rlbench.profiling.text_tables import (
    applied_text,
    criteria_text,
    device_text,
    how_text,
    light_text,
    lines_text,
    syncs_text,
    threads_text,
)

if TYPE_CHECKING:
    from rlbench.profiling.report import Report

TOP = 3  # of a kind of advice
NAME = 18  # characters of a phase's name


def summary(report: Report) -> str:
    """At most 100 columns wide."""
    sections = (
        _phases,
        syncs_text,
        lines_text,
        light_text,
        threads_text,
        device_text,
        criteria_text,
        lambda each: applied_text(each.applied),
        how_text,
    )
    parts = [_head(report), *_advice(report), *(section(report) for section in sections)]
    made = "\n\n".join(part for part in parts if part)
    return made.encode("utf-8", "replace").decode("utf-8")  # names of files may hold what no text can


def _head(report: Report) -> str:
    evidence = report.evidence
    lines = [fill(f"Profile of {subject(evidence)}, {evidence.device}{rate(evidence)}")]
    if report.error:
        lines.append(fill(f"It ended early: {report.error}"))
    lines += [fill(note) for note in evidence.notes]
    return "\n".join([*lines, *(fill(said) for said in report.findings())])


def _advice(report: Report) -> list[str]:
    kinds = {
        kind: [advice for advice in report.advice if advice.kind == kind] for kind in ("fault", "option", "against")
    }
    parts = []
    if kinds["fault"]:
        parts.append(titled("What to change first", [advice_text(a, i) for i, a in enumerate(kinds["fault"][:TOP], 1)]))
    if kinds["option"]:
        parts.append(titled("Other ways to build it", [advice_text(a) for a in kinds["option"][:TOP]]))
    if kinds["against"]:
        lines = [fill(f"- {a.text}{against_ratio(a)} {a.evidence}") for a in kinds["against"]]
        parts.append(titled("What would not help here", lines))
    return parts


def advice_text(advice: Advice, number: int | None = None) -> str:
    """One advice with evidence, lines, what to write instead, and what that brings."""
    lines = [fill(f"{f'{number}.' if number else '-'} {advice.text} {promise(advice)}")]
    lines.append(fill(advice.evidence, "   "))
    lines += [where(place) for place in advice.places]
    lines.append(fill(f"Instead: {advice.instead}", "   "))
    if advice.choice:
        chosen = ", ".join(f"{name}={value}" for name, value in advice.choice.items())
        lines.append(fill(f"In these trainers: {chosen}.", "   "))
    if advice.notebook:
        lines.append(f"   Explained in notebook {advice.notebook}.")
    return "\n".join(lines)


def promise(advice: Advice) -> str:
    """The predicted gain and its bound."""
    gain, bound = advice.predicted_gain, advice.bound
    if gain is None:
        return f"[at most {bound:.2f}x]" if bound else ""
    if not costs(advice):
        return "[costs nothing on this machine]"
    limit = f", at most {bound:.2f}x" if bound else ""
    metric = "" if advice.metric == "steps a second" else f" {advice.metric}"
    return f"[predicted {gain:.2f}x{metric}{limit}]"


def against_ratio(advice: Advice) -> str:
    gain = advice.predicted_gain
    return f" [predicted {gain:.2f}x]" if gain is not None and 0.005 <= gain < 0.995 else ""


def _phases(report: Report) -> str:
    evidence = report.evidence
    if not evidence.seconds:
        return ""
    rows = []
    for phase in evidence.phases:
        if phase.part_of:
            continue
        rows.append(_phase(phase, phase.seconds / evidence.steps if evidence.steps else None))
        parts = [part for part in evidence.phases if part.part_of == phase.name]
        if parts:
            rows.append(f"  its parts, measured {parts_from(phase.name)}, with shares of that second run:")
            rows += [f"  {_phase(part, None, NAME - 2)}" for part in parts]
    total = sum(phase.share for phase in evidence.phases if not phase.part_of)
    rows.append(f"{'all':<18}{evidence.seconds:>9.3f} s {100 * total:>6.1f} %")
    return titled("Where the time goes", rows, "\n")


def _phase(phase: PhaseTime, per_step: float | None, width: int = NAME) -> str:
    name = shortened(TITLES.get(phase.name, phase.name), width - 1)
    each = f"{duration(per_step):>9} a step" if per_step is not None else ""
    return (
        f"{name:<{width}}{phase.seconds:>9.3f} s {100 * phase.share:>6.1f} %  {bar(phase.share):<{BAR}}{each}".rstrip()
    )
