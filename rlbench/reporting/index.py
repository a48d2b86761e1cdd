"""The first page of a report: verdicts and findings, then what was run, with what, on which machine. Plain HTML, no script."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rlbench.progress import duration
from rlbench.reporting.execute import Run, defaults_and_injected
from rlbench.reporting.findings import QUICK, Finding, findings, index_figures

STYLE = """
body { font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #1a1a1a; background: #fff; max-width: 62em;
       margin: 0 auto; padding: 1em 1.2em 4em; }
h1 { font-size: 1.5em; margin: .2em 0; } h2 { font-size: 1.15em; margin: 2em 0 .4em; border-bottom: 1px solid #ccc; }
h3 { font-size: 1em; margin: 1.4em 0 .3em; } .lead { font-size: 1.15em; } .stamp { background: #fff3cd; color: #5c4300;
padding: .2em .6em; font-weight: 600; } table { border-collapse: collapse; width: 100%; font-size: .86em; }
th, td { text-align: left; vertical-align: top; padding: .25em .6em; border-bottom: 1px solid #ddd; }
td.value { font-family: monospace; overflow-wrap: anywhere; } pre { background: #f6f7f8; padding: .7em; overflow-x: auto;
white-space: pre-wrap; font-size: .82em; } figure { margin: 1em 0; } img { max-width: 100%; height: auto; }
figcaption { font-size: .86em; color: #444; } .failed { color: #a33600; font-weight: 600; } .small { font-size: .86em;
color: #444; } a { color: #005a9c; }
"""


@dataclass
class Report:
    """All that the page shows."""

    runs: Sequence[Run]
    quick: bool
    time: str
    card: str
    warnings: Sequence[str] = ()
    rule: str = ""  # how parameters were assigned
    has_rows: bool = False
    found: dict[str, list[Finding]] = field(init=False)

    def __post_init__(self) -> None:
        self.found = {run.name: findings(run.executed) if run.executed else [] for run in self.runs}


def render(report: Report) -> str:
    """The page. Everything that came from a file, a parameter or a notebook is escaped."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>rlbench report, {_text(report.time)}</title>',
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>',
        *_lead(report),
        *_failures(report),
        *_findings(report),
        *_runs(report),
        *_parameters(report),
        *_machine(report),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _text(value: Any) -> str:
    return html.escape(str(value))


def _lead(report: Report) -> list[str]:
    """The headline: the leading verdict, or else the first one."""
    verdicts = [f for found in report.found.values() for f in found if f.kind == "verdict"]
    leading = [f for f in verdicts if f.lead] or verdicts[:1]
    rest = [f for f in verdicts if f not in leading]
    lines = ["<h1>" + " ".join(_text(f.text) for f in leading) + "</h1>"] if leading else ["<h1>rlbench report</h1>"]
    states = [run.state for run in report.runs]
    bad = [f"{states.count(state)} {state}" for state in ("failed", "interrupted", "not run") if state in states]
    state = f'<span class="failed">Of {len(states)} notebooks {", ".join(bad)}.</span> ' if bad else ""
    stamp = f'<span class="stamp">{QUICK}</span> ' if report.quick else ""
    lines.append(
        f'<p class="small">{stamp}{state}rlbench report of {_text(report.time)} UTC, measured on this machine.</p>'
    )
    return [*lines, *(f.html(stamped=False) for f in rest)]


def _failures(report: Report) -> list[str]:
    lines = []
    for run in report.runs:
        if run.failure is not None:
            lines.append(f'<h3 class="failed">{_text(run.name)} {run.state}</h3><pre>{_text(run.failure)}</pre>')
    return ["<h2>Failures</h2>", *lines] if lines else []


def _findings(report: Report) -> list[str]:
    lines = ["<h2>Findings</h2>"]
    for run in report.runs:
        if run.executed is None:
            lines.append(f'<h3>{_text(run.name[:2])} {_text(run.title)}</h3><p class="small">Not run.</p>')
            continue
        lines.append(f'<h3><a href="{_text(run.name)}.html">{_text(run.name[:2])} {_text(run.title)}</a></h3>')
        shown = [f for f in report.found[run.name] if f.kind == "finding"]
        lines += [f.html(stamped=False) for f in shown] or ['<p class="small">No findings.</p>']
        for image, caption in index_figures(run.executed):
            source = f"data:image/png;base64,{image}"
            lines.append(
                f'<figure><img alt="{_text(caption)}" src="{source}"><figcaption>{_text(caption)}</figcaption></figure>'
            )
    return lines


def _runs(report: Report) -> list[str]:
    lines = ["<h2>Notebooks</h2><table><tr><th>notebook</th><th>state</th><th>took</th><th>files</th></tr>"]
    for run in report.runs:
        state = "done" if run.state == "done" else f'<span class="failed">{run.state}</span>'
        name, took, links = _text(run.name), "", ""
        if run.executed is not None:
            took = duration(run.seconds)
            links = f'<a href="{name}.html">page</a>, <a href="{name}.ipynb">executed notebook</a>'
        lines.append(f"<tr><td>{name}</td><td>{state}</td><td>{took}</td><td>{links}</td></tr>")
    rows = '<p class="small">Every measurement, a row each: <a href="rows.jsonl">rows.jsonl</a>.</p>'
    return [*lines, "</table>", rows if report.has_rows else ""]


def _parameters(report: Report) -> list[str]:
    head = "<tr><th>notebook</th><th>parameter</th><th>value</th><th>source</th><th>type</th><th>meaning</th></tr>"
    lines = [f'<h2>Parameters in effect</h2><p class="small">{_text(report.rule)}</p><table>{head}']
    for run in report.runs:
        for row in defaults_and_injected(run):
            source = f"<b>{row['source']}</b>" if row["source"] == "injected" else row["source"]
            value = f'<td class="value">{_text(repr(row["value"]))}</td>'
            cells = f"<td>{_text(run.name)}</td><td>{_text(row['name'])}</td>{value}<td>{source}</td>"
            lines.append(f"<tr>{cells}<td>{_text(row['type'])}</td><td>{_text(row['meaning'])}</td></tr>")
    return [*lines, "</table>"]


def _machine(report: Report) -> list[str]:
    warnings = "".join(f"<li>{_text(text)}</li>" for text in report.warnings)
    warned = f"<ul>{warnings}</ul>" if warnings else '<p class="small">No warnings.</p>'
    return ["<h2>Machine</h2>", f"<pre>{_text(report.card)}</pre>", "<h3>Warnings</h3>", warned]
