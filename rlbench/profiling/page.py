"""A report as one HTML page: no script, no network, text escaped. The answer first."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from rlbench.profiling.advice.gains import duration
from rlbench.profiling.answer import parts_from, rate, subject
from rlbench.profiling.page_parts import STYLE, bar, cards, code, table
from rlbench.profiling.page_tables import (
    applied_html,
    criteria_html,
    device_html,
    how_html,
    light_html,
    lines_html,
    op_lines_html,
    operators_html,
    products_html,
    syncs_html,
)
from rlbench.profiling.records import TITLES

if TYPE_CHECKING:
    from rlbench.profiling.report import Report

HEADS = {"fault": "What to change first", "option": "Other ways to build it", "against": "What would not help here"}
TOP = {"fault": 3, "option": 3, "against": 99}  # cards in the open; what would slow the run down always is


def page(report: Report) -> str:
    """The whole page."""
    title = html.escape(f"Profile of {report.evidence.name}")
    return _encodable(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"</head><body>{fragment(report, whole=True)}</body></html>\n"
    )


def fragment(report: Report, whole: bool = False) -> str:
    """For a notebook: the head, the advice, the phases and what waits; `whole` adds all other tables."""
    sections = [_head, _cards, _phases, syncs_html]
    more = [lines_html, light_html, op_lines_html, operators_html, products_html, device_html, criteria_html]
    parts = [section(report) for section in (sections + more if whole else sections)]
    parts += [applied_html(report), how_html(report)]
    return _encodable(f'<style>{STYLE}</style><div class="rlb">{"".join(parts)}</div>')


def _encodable(text: str) -> str:
    """Names of files may hold what no text can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _head(report: Report) -> str:
    evidence = report.evidence
    notes = "".join(f'<p class="muted">{html.escape(note)}</p>' for note in evidence.notes)
    error = f'<p class="failed">It ended early: {html.escape(report.error)}</p>' if report.error else ""
    said = "".join(f"<p>{code(text)}</p>" for text in report.findings())
    about = f"<p>{html.escape(evidence.device)}{rate(evidence)}</p>"
    return f"<h1>Profile of {html.escape(subject(evidence))}</h1>{about}{error}{notes}{said}"


def _cards(report: Report) -> str:
    kinds = {kind: [advice for advice in report.advice if advice.kind == kind] for kind in HEADS}
    return "".join(f"<h2>{HEADS[kind]}</h2>{cards(of, TOP[kind])}" for kind, of in kinds.items() if of)


def _phases(report: Report) -> str:
    evidence = report.evidence
    own = [phase for phase in evidence.phases if not phase.part_of]
    if not evidence.seconds or not own:
        return ""
    rows: list[tuple[str, ...] | str] = []
    bars = [bar(own)]
    for phase in own:
        each = duration(phase.seconds / evidence.steps) if evidence.steps else ""
        rows.append((_title(phase.name), _seconds(phase.seconds), _percent(phase.share), each, _calls(phase.calls)))
        parts = [part for part in evidence.phases if part.part_of == phase.name]
        if not parts:
            continue
        told = f"parts of {_title(phase.name)}, measured {parts_from(phase.name)}, with shares of that second run:"
        rows.append(told)
        rows += [
            (f"— {_title(part.name)}", _seconds(part.seconds), _percent(part.share), "", _calls(part.calls))
            for part in parts
        ]
        bars.append(f'<p class="muted">{html.escape(told[0].upper() + told[1:])}</p>{bar(parts, low=True)}')
    rows.append(("all", _seconds(evidence.seconds), _percent(sum(p.share for p in own)), "", ""))
    head = ("phase", "seconds", "share", "a step", "calls")
    return f"<h2>Where the time goes</h2>{''.join(bars)}{table(head, rows, numbers=(1, 2, 3, 4))}"


def _title(name: str) -> str:
    return TITLES.get(name, name)


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f} s"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _calls(calls: int) -> str:
    return f"{calls:,}" if calls else ""
