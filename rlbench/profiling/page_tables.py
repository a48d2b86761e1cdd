"""Tables of a report's page. One that has no rows says so in a sentence, or is left out."""

from __future__ import annotations

import base64
import dataclasses
import html
import io
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rlbench.profiling.advice.gains import duration, percent
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.page_parts import table
from rlbench.profiling.records import Place
from rlbench.profiling.roofline import has_roofline, roofline
from rlbench.profiling.text_parts import shortened
from rlbench.profiling.text_tables import SKEW, counted_over, how, often

if TYPE_CHECKING:
    from rlbench.profiling.report import Report

ROWS, PATH = 20, 56
NOT_MEASURED = "not measured"


def syncs_html(report: Report) -> str:
    counted, on_cuda = report.evidence.counted, report.evidence.device.startswith("cuda")
    if counted is None:
        return titled("Synchronisations", _say("Not measured: there was no counting pass."))
    if not counted.syncs:
        return titled("Synchronisations", _say(f"None, {counted_over(counted)}."))
    rows = [
        (
            often(s.per_step) if counted.steps else s.count,
            s.call,
            *_line(s.place),
            s.phase,
            *([NOT_MEASURED if s.wait_s is None else duration(s.wait_s)] if on_cuda else []),
        )
        for s in counted.syncs[:ROWS]
    ]
    head = ("a step" if counted.steps else "count", "call", "where", "source", "phase", *(["wait"] if on_cuda else []))
    note = "" if on_cuda else " On the CPU they cost the call alone; on a GPU each waits for the device."
    said = _say(f"{counted_over(counted).capitalize()}.{note}")
    return titled("Synchronisations", said + table(head, rows, numbers=(0,), coded=(1, 3)))


def lines_html(report: Report) -> str:
    rows = [(f"{100 * x.own:.1f} %", f"{100 * x.total:.1f} %", *_line(x.place), x.phase) for x in report.evidence.lines]
    head = ("own", "in all", "where", "source", "phase")
    if not rows:
        return ""
    return titled("Lines that take longest", table(head, rows[:ROWS], numbers=(0, 1), coded=(3,)) + _say(SKEW))


def op_lines_html(report: Report) -> str:
    counted = report.evidence.counted
    if counted is None or not counted.op_lines:
        return ""
    rows = [(often(x.per_step) if counted.steps else x.ops, *_line(x.place), x.phase) for x in counted.op_lines[:ROWS]]
    head = ("a step" if counted.steps else "count", "where", "source", "phase")
    return titled("Lines that start most operators", table(head, rows, numbers=(0,), coded=(2,)))


def light_html(report: Report) -> str:
    evidence = report.evidence
    rows = [
        (
            x.phase,
            f"{x.flops:,.0f}",
            f"{x.bytes:,.0f}",
            f"{x.ops:.1f}",
            duration(x.seconds),
            duration(x.floor_s),
            x.bound,
            percent(x.share),
        )
        for x in evidence.light
    ]
    if not rows:
        return titled("Speed of light", _say("Not measured: no steps with counted work were on the clock."))
    head = ("phase", "operations", "bytes", "operators", "a step", "floor", "set by", "reached")
    picture = f'<p><img alt="roofline" src="{_roofline(evidence)}"></p>' if has_roofline(evidence) else ""
    said = _say("What a step takes, and the least that its arithmetic, memory or calls must take on this machine.")
    return titled("Speed of light", picture + said + table(head, rows, numbers=(1, 2, 3, 4, 5, 7)))


def _roofline(evidence: Evidence) -> str:
    """A picture in the page itself. The page has the run's name already; fonts of pictures lack many letters."""
    data = io.BytesIO()
    roofline(dataclasses.replace(evidence, name="This run")).savefig(data, format="png", dpi=140)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def operators_html(report: Report) -> str:
    trace = report.evidence.trace
    if trace is None or not trace.operators:
        return ""
    rows = [(x.name, f"{x.calls:,}", duration(x.self_s), _maybe(x.device_s, duration)) for x in trace.operators[:ROWS]]
    seen = f"{trace.steps} traced steps" if trace.steps else f"{duration(trace.seconds)} of trace"
    head = ("operator", "calls", "host", "device")
    return titled(f"Operators by self time, {seen}", table(head, rows, numbers=(1, 2, 3)))


def products_html(report: Report) -> str:
    counted = report.evidence.counted
    if counted is None or not counted.products:
        return ""
    rows = [
        (x.phase, x.batch, x.inputs, x.outputs, f"{x.calls:,}", "learning" if x.learning else "acting")
        for x in counted.products[:ROWS]
    ]
    head = ("phase", "rows", "inputs", "outputs", "calls", "for")
    return titled("Matrix products", table(head, rows, numbers=(1, 2, 3, 4)))


def device_html(report: Report) -> str:
    use, trace = report.evidence.device_use, report.evidence.trace
    steps = max(trace.steps, 1) if trace else 1
    none = f"{NOT_MEASURED}: {use.why_not or 'no data'}"

    def of_trace(field: str, shown: Callable[[Any], str]) -> str:
        return _maybe(getattr(trace, field, None), shown, none)

    rows = [
        ("utilisation (NVML)", _maybe(use.utilisation, percent, none)),
        ("memory (NVML)", _maybe(use.memory, percent, none)),
        ("kernels a step", of_trace("launches", lambda launches: f"{launches / steps:.0f}")),
        ("mean kernel", of_trace("kernel_s", duration)),
        ("busy, by the trace", of_trace("busy", percent)),
        ("host waited, a step", of_trace("sync_s", lambda seconds: duration(seconds / steps))),
        ("allocated, peak", _maybe(use.allocated, lambda size: f"{size:,} bytes", none)),
        ("reserved, never in use", _maybe(use.fragmentation, percent, none)),
        ("allocation retries", _maybe(use.retries, str, none)),
    ]
    copies = [
        (c.direction, f"{c.count:,}", f"{c.bytes:,}", duration(c.seconds), percent(c.share), _pinned(c.pinned))
        for c in (trace.copies if trace else ())
    ]
    head = ("copies", "count", "bytes", "took", "share", "memory")
    more = table(head, copies, numbers=(1, 2, 3, 4)) if copies else ""
    return titled("Device", table(("what", "found"), rows) + more + _threads(report))


def _pinned(pinned: bool | None) -> str:
    return {True: "pinned", False: "pageable", None: "unknown"}[pinned]


def _threads(report: Report) -> str:
    probe = report.evidence.threads
    if probe is None:
        return ""
    tried = sorted((n, s) for n, s in probe.seconds.items() if math.isfinite(s))
    rows = [(n, duration(s), "as it is" if n == probe.now else "") for n, s in tried]
    return table((f"torch threads, of {probe.cores} cores", "a step", ""), rows, numbers=(0, 1))


def criteria_html(report: Report) -> str:
    rows = [(c.name, c.asked, c.found, c.verdict, c.note) for c in report.criteria]
    head = ("criterion", "asked", "found", "verdict", "but")
    return titled("Criteria of the source text", table(head, rows, marked=3)) if rows else ""


def applied_html(report: Report) -> str:
    rows = []
    for applied in report.applied:
        choice = ", ".join(f"{name}={value}" for name, value in applied.choice.items())
        measured = f"{applied.ratio:.2f}x [{applied.low:.2f}, {applied.high:.2f}]"
        told = measured if math.isfinite(applied.ratio) else NOT_MEASURED
        rows.append((applied.advice, choice, _maybe(applied.predicted, lambda x: f"{x:.2f}x"), told, applied.verdict))
    head = ("advice", "choice", "predicted", "measured", "verdict")
    return titled("Applied, in pairs without a profile", table(head, rows, coded=(1,))) if rows else ""


def how_html(report: Report) -> str:
    machine = report.evidence.machine
    named = {"cpu": "{}", "gpus": "{}", "torch": "torch {}", "torch_threads": "{} torch threads", "system": "{}"}
    about = ", ".join(text.format(machine[key]) for key, text in named.items() if machine.get(key))
    return titled("How it was measured", _say(" ".join([*how(report), f"{about}." if about else ""])))


def titled(title: str, inside: str) -> str:
    return f"<h2>{html.escape(title)}</h2>{inside}"


def _say(text: str) -> str:
    return f'<p class="muted">{html.escape(text)}</p>'


def _line(place: Place) -> tuple[str, str]:
    return shortened(f"{place.file}:{place.line}", PATH), place.source


def _maybe(value: Any, shown: Callable[[Any], str], none: str = "") -> str:
    return none if value is None else shown(value)
