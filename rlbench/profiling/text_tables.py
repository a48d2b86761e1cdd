"""Tables of a report for a terminal: what waits, what takes longest, what could be, how it was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlbench.profiling.advice.gains import duration, percent
from rlbench.profiling.findings import Applied
from rlbench.profiling.records import Counted
from rlbench.profiling.text_parts import fill, table, titled

if TYPE_CHECKING:
    from rlbench.profiling.report import Report

TOP_LINES = 6
SKEW = "A sample is taken where Python next lets go, often at a call: some of a line's share may belong to the line before it."
PINNED = {True: ", pinned", False: ", not pinned", None: ""}


def syncs_text(report: Report) -> str:
    counted, on_cuda = report.evidence.counted, report.evidence.device.startswith("cuda")
    if counted is None:
        return "Synchronisations: not measured, there was no counting pass."
    if not counted.syncs:
        return f"Synchronisations: none, {counted_over(counted)}."
    rows = [
        (
            often(s.per_step) if counted.steps else s.count,
            s.call,
            f"{s.place.file}:{s.place.line}",
            s.place.source,
            s.phase,
            *([duration(s.wait_s) if s.wait_s is not None else "-"] if on_cuda else []),
        )
        for s in counted.syncs[:TOP_LINES]
    ]
    cost = "" if on_cuda else "; on the CPU they cost the call alone, on a GPU they wait"
    head = ("a step" if counted.steps else "count", "call", "where", "source", "phase", *(["wait"] if on_cuda else []))
    title = f"Synchronisations{' a step' if counted.steps else ''}, {counted_over(counted)}{cost}"
    return titled(title, [*table(head, rows, cut=(2, 3)), *_left_out(len(counted.syncs))])


def often(per_step: float) -> str:
    """Times a step; what is rare is not shown as never."""
    return f"{per_step:.2f}" if per_step >= 0.005 else f"{per_step:.1g}"


def counted_over(counted: Counted) -> str:
    """A fused call hides its steps from the count."""
    if counted.steps:
        return f"counted over {counted.steps:,} steps"
    return f"counted for {duration(counted.seconds)}, in which no single step was seen"


def _left_out(rows: int) -> list[str]:
    return [f"and {rows - TOP_LINES} more, in the page and in the document"] if rows > TOP_LINES else []


def lines_text(report: Report) -> str:
    lines = report.evidence.lines
    rows = [
        (
            f"{100 * line.own:.1f} %",
            f"{100 * line.total:.1f} %",
            f"{line.place.file}:{line.place.line}",
            line.place.source,
            line.phase,
        )
        for line in lines[:TOP_LINES]
    ]
    head = ("own", "in all", "where", "source", "phase")
    return titled("Lines that take longest", [*table(head, rows, cut=(2, 3)), fill(SKEW)]) if rows else ""


def light_text(report: Report) -> str:
    rows = [
        (row.phase, duration(row.seconds), duration(row.floor_s), row.bound, percent(row.share))
        for row in report.evidence.light
    ]
    title = "Speed of light: what a step takes, and the least that its arithmetic, memory or calls must take here"
    if not rows:
        return "Speed of light: not measured, no steps with counted work were on the clock."
    return titled(title, table(("phase", "a step", "floor", "set by", "reached"), rows))


def threads_text(report: Report) -> str:
    probe = report.evidence.threads
    if probe is None:
        return ""
    tried = [
        f"{n}{' (as it is)' if n == probe.now else ''} {duration(s)}"
        for n, s in sorted(probe.seconds.items())
        if math.isfinite(s)
    ]
    return fill(f"Torch threads tried in turns, on {probe.cores} cores, time a step: {', '.join(tried)}.")


def device_text(report: Report) -> str:
    evidence = report.evidence
    trace, use = evidence.trace, evidence.device_use
    if not evidence.device.startswith("cuda"):
        return fill(
            f"Device: not measured, the run is on the {evidence.device.upper()} (kernels, copies to a device and back, "
            "utilisation, memory)."
        )
    lines = []
    if trace is None or trace.launches is None:
        lines.append("Kernels and copies: not measured, there is no trace of the device.")
    else:
        steps = max(trace.steps, 1)
        lines.append(
            f"{trace.launches / steps:.0f} kernels a step of {duration(trace.kernel_s or 0.0)} each; the device was busy "
            f"{percent(trace.busy or 0.0)} of the time, the host waited {duration((trace.sync_s or 0.0) / steps)} a step."
        )
        lines += [
            f"Copies {c.direction}: {c.count}, {c.bytes:,} bytes, {percent(c.share)} of the time{PINNED[c.pinned]}."
            for c in trace.copies
        ]
    seen = {"utilisation": use.utilisation, "memory in use": use.memory}
    told = [f"{name} {'not measured' if value is None else percent(value)}" for name, value in seen.items()]
    lines.append(f"NVML: {', '.join(told)}{f' ({use.why_not})' if use.why_not else ''}.")
    if use.allocated is not None:
        lines.append(
            f"Allocator: {use.allocated:,} bytes at most, {percent(use.fragmentation or 0.0)} of what it reserved was never "
            f"in use, {use.retries or 0} retries."
        )
    return titled("Device", [fill(line) for line in lines])


def criteria_text(report: Report) -> str:
    """Each with its verdict; where there is one, with where the criterion misleads."""
    rows = [(c.name, c.asked, c.found, c.verdict) for c in report.criteria]
    if not rows:
        return ""
    notes = [fill(f"{c.name}: {c.note}") for c in report.criteria if c.note and c.verdict in ("passed", "failed")]
    head = ("criterion", "asked", "found", "verdict")
    return titled("Criteria of the source text", [*table(head, rows, cut=(2,)), *notes])


def applied_text(applied: Sequence[Applied]) -> str:
    """Predicted beside measured."""
    if not applied:
        return ""
    rows = [
        (a.advice, "-" if a.predicted is None else f"{a.predicted:.2f}x", *_measured(a), a.verdict) for a in applied
    ]
    head, *lines = table(("advice", "predicted", "measured", "A/A band", "verdict"), rows, cut=(0, 4))
    chosen = [", ".join(f"{name}={value}" for name, value in a.choice.items()) for a in applied]
    below = [f"{line}\n{fill(choice, '   ')}" for line, choice in zip(lines, chosen, strict=True)]
    return titled("Applied, in pairs without a profile", [head, *below])


def _measured(applied: Applied) -> tuple[str, str]:
    if not math.isfinite(applied.ratio):
        return "-", "-"
    ratio = f"{applied.ratio:.2f}x [{applied.low:.2f}, {applied.high:.2f}]"
    return ratio, f"[{applied.aa_low:.2f}, {applied.aa_high:.2f}]"


def slower(slowdown: float | None) -> str:
    """What watching did to the pace; at less than 1.05 times blocks of the same run differ by as much."""
    if not slowdown:
        return ""
    return f", {slowdown:.1f} times as slow" if slowdown >= 1.05 else ", no slower within the noise"


def how_text(report: Report) -> str:
    """How long each pass was, and what it cost."""
    return fill(" ".join(how(report)))


def how(report: Report) -> list[str]:
    """Sentences about the passes, for a terminal and for a page."""
    evidence = report.evidence
    said = [f"On the clock for {evidence.seconds:.2f} s."]
    if evidence.overhead is not None:
        said.append(
            f"The clock itself took {percent(evidence.overhead.clock)} of that, the sampler {percent(evidence.overhead.sampler)}."
        )
    for name, seen in (("Counting", evidence.counted), ("Trace", evidence.trace)):
        if seen is not None:
            seen_steps = f"{seen.steps:,} steps in {seen.seconds:.2f} s"
            hidden = f"{seen.seconds:.2f} s, in which no single step was seen"
            said.append(f"{name}: {seen_steps if seen.steps else hidden}{slower(seen.slowdown)}.")
    return [*said, "The passes took turns; times come from the clock alone."]
