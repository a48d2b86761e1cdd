"""A report for a terminal: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlbench.profiling.advice.gains import duration
from rlbench.profiling.findings import Advice, Applied
from rlbench.profiling.records import TITLES, PhaseTime
from rlbench.profiling.text_parts import BAR, WIDTH, bar, fill, table, titled

if TYPE_CHECKING:
    from rlbench.profiling.report import Report

TOP_FAULTS, TOP_OPTIONS, TOP_LINES = 3, 3, 6


def summary(report: Report) -> str:
    """At most 100 columns wide."""
    parts = [
        _head(report),
        *_advice(report),
        _phases(report),
        _syncs(report),
        _lines(report),
        _light(report),
        _device(report),
        _criteria(report),
        applied_text(report.applied),
        _how(report),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(report: Report) -> str:
    evidence = report.evidence
    what = {"script": "script", "block": "block"}.get(evidence.what, f"{evidence.what.upper()} on")
    rate = f", {evidence.steps / evidence.seconds:,.0f} steps a second" if evidence.seconds and evidence.steps else ""
    lines = [f"Profile of {what} {evidence.name}, {evidence.device}{rate}"]
    if report.error:
        lines.append(f"It ended by an exception: {report.error}")
    lines += [fill(note, "") for note in evidence.notes]
    return "\n".join(lines)


def _advice(report: Report) -> list[str]:
    kinds = {
        kind: [advice for advice in report.advice if advice.kind == kind] for kind in ("fault", "option", "against")
    }
    parts = []
    if kinds["fault"]:
        parts.append(
            titled("What to change first", [advice_text(a, i) for i, a in enumerate(kinds["fault"][:TOP_FAULTS], 1)])
        )
    elif report.evidence.steps:
        parts.append("No fault was found: no part of the time buys nothing, by the rules that are known here.")
    if kinds["option"]:
        parts.append(titled("Other ways to build it", [advice_text(a) for a in kinds["option"][:TOP_OPTIONS]]))
    if kinds["against"]:
        lines = [fill(f"- {a.text}{against_ratio(a)} {a.evidence}") for a in kinds["against"]]
        parts.append(titled("What would not help here", lines))
    return parts


def advice_text(advice: Advice, number: int | None = None) -> str:
    """One advice with evidence, lines, what to write instead, and what that brings."""
    lines = [fill(f"{f'{number}.' if number else '-'} {advice.text} {promise(advice)}")]
    lines.append(fill(advice.evidence, "   "))
    lines += [f"   {place.file}:{place.line}  {place.source}"[:WIDTH] for place in advice.places]
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
    if gain < 1.005:
        return "[costs nothing on this machine]"
    limit = f", at most {bound:.2f}x" if bound else ""
    metric = "" if advice.metric == "steps a second" else f" {advice.metric}"
    return f"[predicted {gain:.2f}x{metric}{limit}]"


def against_ratio(advice: Advice) -> str:
    gain = advice.predicted_gain
    return f" [predicted {gain:.2f}x]" if gain is not None and gain < 0.995 else ""


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
            rows.append(
                f"    its parts, measured in a second run{' under loop=python' if phase.name == 'iterations' else ''}:"
            )
            rows += [f"  {_phase(part, None)}" for part in parts]
    total = sum(phase.share for phase in evidence.phases if not phase.part_of)
    rows.append(f"{'all':<18}{evidence.seconds:>9.3f} s {100 * total:>6.1f} %")
    return titled("Where the time goes", rows, "\n")


def _phase(phase: PhaseTime, per_step: float | None) -> str:
    name = TITLES.get(phase.name, phase.name)
    each = f"{duration(per_step) if per_step else '':>9}" if per_step is not None else ""
    each += " a step" if per_step else ""
    return f"{name:<18}{phase.seconds:>9.3f} s {100 * phase.share:>6.1f} %  {bar(phase.share):<{BAR}}{each}".rstrip()


def _syncs(report: Report) -> str:
    counted = report.evidence.counted
    if counted is None:
        return ""
    if not counted.syncs:
        return f"Synchronisations: none in {counted.steps} counted steps."
    rows = [
        (f"{s.per_step:.2f}", s.call, f"{s.place.file}:{s.place.line}", s.place.source, s.phase)
        for s in counted.syncs[:TOP_LINES]
    ]
    cost = (
        "" if report.evidence.device.startswith("cuda") else "; on the CPU they cost the call alone, on a GPU they wait"
    )
    title = f"Synchronisations a step, counted over {counted.steps} steps{cost}"
    return titled(title, table(("a step", "call", "where", "source", "phase"), rows), "\n")


def _lines(report: Report) -> str:
    lines = report.evidence.lines[:TOP_LINES]
    rows = [
        (
            f"{100 * line.own:.1f} %",
            f"{100 * line.total:.1f} %",
            f"{line.place.file}:{line.place.line}",
            line.place.source,
            line.phase,
        )
        for line in lines
    ]
    return (
        titled("Lines that take longest", table(("own", "in all", "where", "source", "phase"), rows), "\n")
        if rows
        else ""
    )


def _light(report: Report) -> str:
    rows = [
        (row.phase, duration(row.seconds), duration(row.floor_s), row.bound, f"{100 * row.share:.1f} %")
        for row in report.evidence.light
    ]
    title = "Speed of light: what a step takes, and the least that its arithmetic, memory or calls must take here"
    return titled(title, table(("phase", "a step", "floor", "set by", "reached"), rows), "\n") if rows else ""


def _device(report: Report) -> str:
    evidence = report.evidence
    trace, use = evidence.trace, evidence.device_use
    if not evidence.device.startswith("cuda"):
        return fill(
            "Device: not measured, the run is on the CPU (kernels, copies to it and back, utilisation, memory)."
        )
    lines = []
    if trace is not None and trace.launches is not None:
        lines.append(
            f"{trace.launches / max(trace.steps, 1):.0f} kernels a step of {duration(trace.kernel_s or 0.0)} each; the device "
            f"was busy {100 * (trace.busy or 0.0):.0f} % of the time, "
            f"the host waited {duration((trace.sync_s or 0.0) / max(trace.steps, 1))} a step."
        )
        lines += [f"{c.direction}: {c.count} copies, {c.bytes:,} bytes, {100 * c.share:.1f} %" for c in trace.copies]
    seen = "not measured" if use.utilisation is None else f"{100 * use.utilisation:.0f} %"
    lines.append(f"NVML utilisation {seen}{f' ({use.why_not})' if use.why_not else ''}.")
    return titled("Device", [fill(line) for line in lines], "\n")


def _criteria(report: Report) -> str:
    rows = [(c.name, c.asked, c.found, c.verdict) for c in report.criteria]
    return (
        titled("Criteria of the source text", table(("criterion", "asked", "found", "verdict"), rows), "\n")
        if rows
        else ""
    )


def applied_text(applied: Sequence[Applied]) -> str:
    """Predicted beside measured."""
    if not applied:
        return ""
    rows = [
        (
            a.advice,
            ", ".join(f"{name}={value}" for name, value in a.choice.items()),
            "-" if a.predicted is None else f"{a.predicted:.2f}x",
            f"{a.ratio:.2f}x [{a.low:.2f}, {a.high:.2f}]",
            f"[{a.aa_low:.2f}, {a.aa_high:.2f}]",
            a.verdict,
        )
        for a in applied
    ]
    head = ("advice", "choice", "predicted", "measured", "A/A band", "verdict")
    return titled("Applied, in pairs without a profile", table(head, rows), "\n")


def _how(report: Report) -> str:
    evidence = report.evidence
    parts = [f"On the clock for {evidence.seconds:.1f} s"]
    if evidence.overhead is not None:
        clock, sampler = 100 * evidence.overhead.clock, 100 * evidence.overhead.sampler
        parts[0] += f", which itself takes {clock:.1f} % while it looks, the sampler {sampler:.1f} %"
    for name, seen in (("counting", evidence.counted), ("trace", evidence.trace)):
        if seen is not None:
            slower = f", {seen.slowdown:.1f} times as slow" if seen.slowdown else ""
            parts.append(f"{name}: {seen.steps} steps in {seen.seconds:.2f} s{slower}")
    return fill("Watched in turns. " + "; ".join(parts) + ". Times come from the clock alone.", "")
