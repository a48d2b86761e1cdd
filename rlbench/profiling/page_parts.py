"""Cards and tables of a report's page, and how they look."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from rlbench.profiling.findings import Advice
from rlbench.profiling.text import against_ratio, promise

STYLE = """
.rlb{font:15px/1.45 system-ui,sans-serif;color:#222;max-width:60rem;margin:0 auto;padding:0 1rem}
.rlb h1{font-size:1.35rem}.rlb h2{font-size:1.05rem;margin:1.6em 0 .5em}
.rlb table{border-collapse:collapse;font-size:.86rem;display:block;overflow-x:auto}
.rlb th,.rlb td{text-align:left!important;padding:.22em .7em .22em 0;border-bottom:1px solid #eee;vertical-align:top}
.rlb th{color:#666;font-weight:600}.rlb td.n{text-align:right!important;font-variant-numeric:tabular-nums}
.rlb code,.rlb pre{font:12.5px/1.4 ui-monospace,monospace;background:#f5f5f5;border-radius:4px}
.rlb code{padding:.05em .3em}.rlb pre{padding:.5em .7em;overflow-x:auto;margin:.5em 0}
.rlb .card{border:1px solid #ddd;border-left:5px solid #D55E00;border-radius:6px;padding:.6em 1em;margin:.6em 0}
.rlb .card.option{border-left-color:#0072B2}.rlb .card.against{border-left-color:#999}
.rlb .gain{float:right;font-weight:700;margin-left:1em}.rlb .muted{color:#666;font-size:.86rem}
.rlb .bar{display:flex;height:1.7rem;border-radius:4px;overflow:hidden;margin:.4em 0}
.rlb .bar span{display:block;height:100%}.rlb .key span{display:inline-block;margin-right:1em;font-size:.84rem}
.rlb .key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em}
.rlb .passed{color:#00785a}.rlb .failed{color:#b84a00}.rlb img{max-width:100%}
"""


def card(advice: Advice) -> str:
    """One advice."""
    gain = (promise(advice) if advice.kind != "against" else against_ratio(advice)).strip(" []")
    lines = "\n".join(f"{place.file}:{place.line}  {place.source}" for place in advice.places)
    choice = ", ".join(f"{name}={value}" for name, value in advice.choice.items())
    where = f" Explained in notebook {html.escape(advice.notebook)}." if advice.notebook else ""
    return (
        f'<div class="card {advice.kind}"><span class="gain">{html.escape(gain)}</span><b>{code(advice.text)}</b>'
        f'<div class="muted">{code(advice.evidence)}</div>'
        + (f"<pre>{html.escape(lines)}</pre>" if lines else "")
        + f"<div>Instead: {code(advice.instead)}</div>"
        + (f"<div>In these trainers: <code>{html.escape(choice)}</code>.</div>" if choice else "")
        + (f'<div class="muted">{where}</div>' if where else "")
        + "</div>"
    )


def code(text: str) -> str:
    """Escaped, what stands between backquotes as code."""
    pieces = html.escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], coded: Sequence[int] = (), marked: int = -1) -> str:
    """A table, escaped; columns in `coded` as code, the one in `marked` coloured by its word."""
    made = "".join(
        f"<tr>{''.join(_cell(cell, i in coded, i == marked) for i, cell in enumerate(row))}</tr>" for row in rows
    )
    return f"<table><tr>{''.join(f'<th>{html.escape(name)}</th>' for name in head)}</tr>{made}</table>"


def _cell(cell: Any, coded: bool, marked: bool) -> str:
    text = html.escape("" if cell is None else str(cell))
    number = text[:1].isdigit() and not marked
    shown = f"<code>{text}</code>" if coded and text else text
    return f'<td class="{"n" if number else text if marked else ""}">{shown}</td>'
