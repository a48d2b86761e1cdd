"""Cards, bars and tables of a report's page, and how they look."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from rlbench.profiling.advice.gains import percent
from rlbench.profiling.findings import Advice
from rlbench.profiling.records import PHASES, TITLES, PhaseTime
from rlbench.profiling.text import against_ratio, promise

# In the order of PHASES, so that a phase has the same colour in every report; then those that a trainer adds.
COLOURS = (
    *("#8C6BB1", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#F0C419", "#D55E00", "#56B4E9", "#8C510A"),
    *("#B2182B", "#777777", "#BBBBBB", "#1B7837", "#313695", "#C51B7D", "#01665E"),
)
STYLE = """
.rlb{font:15px/1.45 system-ui,sans-serif;color:#222;background:#fff;max-width:60rem;margin:0 auto;padding:.2rem 1rem 1rem}
.rlb h1{font-size:1.35rem;overflow-wrap:anywhere}.rlb h2{font-size:1.05rem;margin:1.6em 0 .5em}
.rlb p{margin:.5em 0;overflow-wrap:anywhere}.rlb .wide{overflow-x:auto}
.rlb table{border-collapse:collapse;font-size:.86rem;color:#222;background:#fff;margin:0}
.rlb th,.rlb td{text-align:left!important;padding:.22em .9em .22em 0;border-bottom:1px solid #eee;vertical-align:top}
.rlb tr,.rlb tr:hover{background:#fff!important}.rlb th{color:#666;font-weight:600;white-space:nowrap}
.rlb .n{text-align:right!important;font-variant-numeric:tabular-nums;white-space:nowrap}
.rlb .s,.rlb .s code{white-space:nowrap}.rlb .in{padding-left:1.4em}.rlb .of td{color:#666;border:0}
.rlb code,.rlb pre{font:12.5px/1.4 ui-monospace,monospace;color:#222;background:#f5f5f5;border-radius:4px}
.rlb code{padding:.05em .3em;overflow-wrap:anywhere}.rlb pre{padding:.5em .7em;overflow-x:auto;margin:.5em 0}
.rlb .card{border:1px solid #ddd;border-left:5px solid #D55E00;border-radius:6px;padding:.6em 1em;margin:.6em 0}
.rlb .card.option{border-left-color:#0072B2}.rlb .card.against{border-left-color:#999}
.rlb .gain{float:right;font-weight:700;margin-left:1em}.rlb .muted{color:#666;font-size:.86rem}
.rlb .bar{display:flex;height:1.7rem;border-radius:4px;overflow:hidden;margin:.4em 0}.rlb .bar.low{height:.9rem}
.rlb .bar span{display:block;height:100%}.rlb .key span{display:inline-block;margin-right:1em;font-size:.84rem}
.rlb .key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em}
.rlb .passed{color:#00785a}.rlb .failed{color:#b84a00}.rlb .not{color:#666}.rlb img{max-width:100%}
.rlb summary{cursor:pointer;color:#0072B2;margin:.4em 0}
@media(max-width:34rem){.rlb .gain{float:none;display:block;margin:0}}
"""


def card(advice: Advice) -> str:
    """One advice."""
    gain = (promise(advice) if advice.kind != "against" else against_ratio(advice)).strip(" []")
    lines = "\n".join(f"{place.file}:{place.line}  {place.source}" for place in advice.places)
    choice = ", ".join(f"{name}={value}" for name, value in advice.choice.items())
    where = f"Explained in notebook {html.escape(advice.notebook)}." if advice.notebook else ""
    return (
        f'<div class="card {advice.kind}"><span class="gain">{html.escape(gain)}</span><b>{code(advice.text)}</b>'
        f'<div class="muted">{code(advice.evidence)}</div>'
        + (f"<pre>{html.escape(lines)}</pre>" if lines else "")
        + f"<div>Instead: {code(advice.instead)}</div>"
        + (f"<div>In these trainers: <code>{html.escape(choice)}</code>.</div>" if choice else "")
        + (f'<div class="muted">{where}</div>' if where else "")
        + "</div>"
    )


def cards(advice: Sequence[Advice], top: int) -> str:
    """The first `top` in the open, the others folded."""
    shown, more = "".join(map(card, advice[:top])), "".join(map(card, advice[top:]))
    return shown + (folded(f"{len(advice) - top} more", more) if more else "")


def folded(title: str, inside: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


def code(text: str) -> str:
    """Escaped, what stands between backquotes as code."""
    pieces = html.escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))


def bar(phases: Sequence[PhaseTime], low: bool = False) -> str:
    """A stacked bar of shares, and what its colours mean."""
    colours = {phase.name: colour(phase.name, i) for i, phase in enumerate(phases)}
    named = [
        (colours[p.name], f"{html.escape(TITLES.get(p.name, p.name))} {percent(p.share)}", p.share) for p in phases
    ]
    pieces = "".join(
        f'<span style="width:{100 * share:.2f}%;background:{tone}" title="{name}"></span>'
        for tone, name, share in named
    )
    keys = "".join(
        f'<span><i style="background:{tone}"></i>{name}</span>' for tone, name, share in named if share >= 0.005
    )
    return f'<div class="bar{" low" if low else ""}">{pieces}</div><div class="key">{keys}</div>'


def colour(phase: str, place: int) -> str:
    own = len(PHASES)
    return COLOURS[PHASES.index(phase) if phase in PHASES else own + place % (len(COLOURS) - own)]


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    numbers: Sequence[int] = (),
    coded: Sequence[int] = (),
    marked: int = -1,
) -> str:
    """A table, escaped. Columns in `numbers` stand to the right, those in `coded` are code, the words in `marked` are coloured.

    A row that is one text goes over all columns.
    """

    def cell(text: str, i: int) -> str:
        kind = "n" if i in numbers else text.split(" ")[0] if i == marked else "s" if i in coded else ""
        return f"<td{_class(kind)}>{f'<code>{text}</code>' if i in coded and text else text}</td>"

    made = []
    for row in rows:
        if isinstance(row, str):
            made.append(f'<tr class="of"><td colspan="{len(head)}">{html.escape(row)}</td></tr>')
        else:
            made.append(f"<tr>{''.join(cell(_text(value), i) for i, value in enumerate(row))}</tr>")
    names = [f"<th{_class('n' if i in numbers else '')}>{html.escape(name)}</th>" for i, name in enumerate(head)]
    return f'<div class="wide"><table><tr>{"".join(names)}</tr>{"".join(made)}</table></div>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value))
