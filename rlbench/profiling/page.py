"""A report as one HTML page: no script, no network, text escaped. The answer first."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING, Any

from rlbench.profiling.advice.gains import duration, percent
from rlbench.profiling.page_parts import STYLE, card, table
from rlbench.profiling.records import TITLES
from rlbench.profiling.roofline import has_roofline, roofline

if TYPE_CHECKING:
    from rlbench.profiling.report import Report

COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#8C6BB1",
    "#666666",
    "#B8A100",
    "#3B7A57",
    "#AAAAAA",
)


def page(report: Report) -> str:
    """The whole page."""
    title = html.escape(f"Profile of {report.evidence.name}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"</head><body>{fragment(report, whole=True)}</body></html>\n"
    )


def fragment(report: Report, whole: bool = False) -> str:
    """For a notebook: the head, the advice, the phases and what waits; `whole` adds all other tables."""
    parts = [_head(report), _cards(report), _phases(report), _syncs(report)]
    if whole:
        parts += [
            _lines(report),
            _light(report),
            _operators(report),
            _device(report),
            _criteria(report),
            _applied(report),
            _how(report),
        ]
    return f'<style>{STYLE}</style><div class="rlb">{"".join(parts)}</div>'


def _head(report: Report) -> str:
    evidence = report.evidence
    rate = f", {evidence.steps / evidence.seconds:,.0f} steps a second" if evidence.seconds and evidence.steps else ""
    notes = "".join(f'<p class="muted">{html.escape(note)}</p>' for note in evidence.notes)
    error = f'<p class="failed">It ended by an exception: {html.escape(report.error)}</p>' if report.error else ""
    return f"<h1>Profile of {html.escape(evidence.name)}</h1><p>{html.escape(evidence.device)}{rate}</p>{error}{notes}"


def _cards(report: Report) -> str:
    heads = {"fault": "What to change first", "option": "Other ways to build it", "against": "What would not help here"}
    made = []
    for kind, head in heads.items():
        of_kind = [advice for advice in report.advice if advice.kind == kind]
        if kind == "fault" and not of_kind and report.evidence.steps:
            made.append(f"<h2>{head}</h2><p>No fault was found by the rules that are known here.</p>")
        elif of_kind:
            made.append(f"<h2>{head}</h2>{''.join(card(advice) for advice in of_kind)}")
    return "".join(made)


def _phases(report: Report) -> str:
    evidence = report.evidence
    own = [phase for phase in evidence.phases if not phase.part_of]
    if not evidence.seconds:
        return ""
    colours = {phase.name: COLOURS[i % len(COLOURS)] for i, phase in enumerate(own)}
    pieces = "".join(
        f'<span style="width:{100 * p.share:.2f}%;background:{colours[p.name]}" title="{html.escape(_title(p.name))} '
        f'{percent(p.share)}"></span>'
        for p in own
    )
    keys = "".join(
        f'<span><i style="background:{colours[p.name]}"></i>{html.escape(_title(p.name))} {percent(p.share)}</span>'
        for p in own
        if p.share >= 0.005
    )
    rows = []
    for phase in own:
        each = duration(phase.seconds / evidence.steps) if evidence.steps else ""
        rows.append(
            (_title(phase.name), f"{phase.seconds:.3f} s", f"{100 * phase.share:.1f} %", each, phase.calls or "")
        )
        for part in evidence.phases:
            if part.part_of == phase.name:
                name = f"— {_title(part.name)} (its part, in a second run)"
                rows.append((name, f"{part.seconds:.3f} s", f"{100 * part.share:.1f} %", "", part.calls or ""))
    rows.append(("all", f"{evidence.seconds:.3f} s", f"{100 * sum(p.share for p in own):.1f} %", "", ""))
    head = ("phase", "seconds", "share", "a step", "calls")
    return (
        f'<h2>Where the time goes</h2><div class="bar">{pieces}</div><div class="key">{keys}</div>{table(head, rows)}'
    )


def _title(name: str) -> str:
    return TITLES.get(name, name)


def _syncs(report: Report) -> str:
    counted = report.evidence.counted
    if counted is None:
        return ""
    rows = [
        (f"{s.per_step:.2f}", s.call, f"{s.place.file}:{s.place.line}", s.place.source, s.phase, _wait(s.wait_s))
        for s in counted.syncs[:20]
    ]
    return f"<h2>Synchronisations, counted over {counted.steps} steps</h2>" + table(
        ("a step", "call", "where", "source", "phase", "wait"), rows, coded=(3,)
    )


def _wait(seconds: float | None) -> str:
    return "not measured" if seconds is None else duration(seconds)


def _lines(report: Report) -> str:
    rows = [
        (f"{100 * x.own:.1f} %", f"{100 * x.total:.1f} %", f"{x.place.file}:{x.place.line}", x.place.source, x.phase)
        for x in report.evidence.lines[:15]
    ]
    return "<h2>Lines that take longest</h2>" + table(("own", "in all", "where", "source", "phase"), rows, coded=(3,))


def _light(report: Report) -> str:
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
    head = ("phase", "operations", "bytes", "operators", "a step", "floor", "set by", "reached")
    picture = f'<p><img alt="roofline" src="{_png(roofline(evidence))}"></p>' if has_roofline(evidence) else ""
    return f"<h2>Speed of light</h2>{picture}{table(head, rows)}" if rows else ""


def _png(figure: Any) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=140)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def _operators(report: Report) -> str:
    trace = report.evidence.trace
    if trace is None:
        return ""
    rows = [
        (x.name, x.calls, duration(x.self_s), "" if x.device_s is None else duration(x.device_s))
        for x in trace.operators[:15]
    ]
    return f"<h2>Operators by self time, {trace.steps} traced steps</h2>" + table(
        ("operator", "calls", "host", "device"), rows
    )


def _device(report: Report) -> str:
    use, trace = report.evidence.device_use, report.evidence.trace
    values: list[tuple[str, Any]] = [
        ("utilisation (NVML)", use.utilisation and percent(use.utilisation)),
        ("memory (NVML)", use.memory and percent(use.memory)),
        ("kernels a step", trace and trace.launches and f"{trace.launches / max(trace.steps, 1):.0f}"),
        ("mean kernel", trace and trace.kernel_s and duration(trace.kernel_s)),
        ("busy, by the trace", trace and trace.busy and percent(trace.busy)),
        ("allocated, peak", use.allocated and f"{use.allocated:,} bytes"),
        ("fragmentation", use.fragmentation and percent(use.fragmentation)),
        ("allocation retries", use.retries),
    ]
    rows = [(name, f"not measured: {use.why_not or 'no data'}" if value is None else value) for name, value in values]
    copies = [
        (c.direction, c.count, f"{c.bytes:,}", percent(c.share), _pinned(c.pinned))
        for c in (trace.copies if trace else ())
    ]
    more = table(("copies", "count", "bytes", "share", "memory"), copies) if copies else ""
    return "<h2>Device</h2>" + table(("what", "found"), rows) + more


def _pinned(pinned: bool | None) -> str:
    return {True: "pinned", False: "pageable", None: "unknown"}[pinned]


def _criteria(report: Report) -> str:
    rows = [(c.name, c.asked, c.found, c.verdict, c.note) for c in report.criteria]
    return "<h2>Criteria of the source text</h2>" + table(
        ("criterion", "asked", "found", "verdict", "but"), rows, marked=3
    )


def _applied(report: Report) -> str:
    if not report.applied:
        return ""
    rows = []
    for applied in report.applied:
        choice = ", ".join(f"{name}={value}" for name, value in applied.choice.items())
        predicted = "" if applied.predicted is None else f"{applied.predicted:.2f}x"
        measured = f"{applied.ratio:.2f}x [{applied.low:.2f}, {applied.high:.2f}]"
        rows.append((applied.advice, choice, predicted, measured, applied.verdict))
    head = ("advice", "choice", "predicted", "measured", "verdict")
    return f"<h2>Applied, in pairs without a profile</h2>{table(head, rows)}"


def _how(report: Report) -> str:
    evidence = report.evidence
    words = [f"On the clock for {evidence.seconds:.1f} s."]
    if evidence.overhead is not None:
        clock, sampler = percent(evidence.overhead.clock), percent(evidence.overhead.sampler)
        words.append(f"The clock takes {clock} while it looks, the sampler {sampler}.")
    for name, seen in (("Counting", evidence.counted), ("Trace", evidence.trace)):
        if seen is not None:
            slower = f", {seen.slowdown:.1f} times as slow" if seen.slowdown else ""
            words.append(f"{name}: {seen.steps} steps in {seen.seconds:.2f} s{slower}.")
    machine = evidence.machine
    words.append("Passes take turns; times come from the clock alone.")
    about = ", ".join(str(machine[key]) for key in ("cpu", "torch", "threads") if machine.get(key))
    return f'<h2>How it was measured</h2><p class="muted">{html.escape(" ".join(words))} {html.escape(about)}</p>'
