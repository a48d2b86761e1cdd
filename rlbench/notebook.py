"""What the notebooks call: the machine's card, findings, tables, figures, sources. Nothing here needs a live kernel later.

Everything shown is plain HTML, text or an image, so that an executed copy makes sense without a kernel and without widgets.
"""

from __future__ import annotations

import base64
import contextlib
import difflib
import html
import inspect
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from IPython.display import HTML, display
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CLexer, PythonLexer

from rlbench import results
from rlbench.machine import Machine, describe
from rlbench.reporting.findings import FIGURE, QUICK, Finding
from rlbench.reporting.kernel import ROWS_VARIABLE
from rlbench.reporting.parameters import ParameterError, declared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 100
PRE = "font-family:monospace;font-size:.85em;line-height:1.4;white-space:pre-wrap"
CHANGED = {"+": "background:#e3f4ea", "-": "background:#fbe9e2", "@": "color:#6B6B6B"}  # beside the sign itself


@dataclass
class _Session:
    """What the cells of one notebook share."""

    quick: bool = True


_session = _Session()


def start(quick: bool, threads: int = 0) -> Machine:
    """Show the machine's card, the parameters in effect, and the stamp of a quick run. Returns the machine.

    `threads` sets torch's threads in this kernel; 0 leaves its own number. Raises ValueError for a negative number.
    """
    _session.quick = quick
    if threads < 0:
        raise ValueError(
            f"threads={threads}: accepted are 0, which leaves torch's own number, and whole numbers from 1."
        )
    if threads:
        torch.set_num_threads(threads)
    machine = describe()
    card = f"{machine.card()}\nOMP_NUM_THREADS  {os.environ.get('OMP_NUM_THREADS', 'not set')}"
    stamp = (
        f'<p style="background:#fff3cd;color:#5c4300;padding:.2em .6em;font-weight:600">{QUICK}</p>' if quick else ""
    )
    display(HTML(f'{stamp}<pre style="{PRE}">{html.escape(card)}</pre>'))
    for text in machine.warnings():
        _say(text, "warning")
    shown = parameters_in_effect(_executed_cells())
    if shown:
        table(shown)
    return machine


def _executed_cells() -> Sequence[str]:
    from IPython import get_ipython

    shell = get_ipython()
    return [] if shell is None else [source for source in shell.user_ns.get("In", []) if source.strip()]


def parameters_in_effect(cells: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each parameter, from the sources of the cells that were run: its value, and whether it was injected."""
    for number, source in enumerate(cells):
        try:
            known = declared(source)
        except (ParameterError, SyntaxError):
            continue
        if known:
            following = cells[number + 1] if number + 1 < len(cells) else ""
            scope: dict[str, Any] = {}
            if following.startswith("# Parameters"):
                exec(following, {}, scope)  # papermill's own cell of literals, which this kernel has just run
            return [
                {
                    "parameter": p.name,
                    "value": repr(scope.get(p.name, p.default)),
                    "source": "injected" if p.name in scope else "default",
                    "meaning": p.help,
                }
                for p in known.values()
            ]
    return []


def finding(text: str, tone: str = "note") -> None:
    """Show a sentence computed from data, and send it to the report's index.

    `tone`: "faster", "slower", "none" (no difference seen), "not measured" or "note"; all are equally visible.
    """
    _say(text, "finding", tone)


def verdict(text: str, tone: str = "note", lead: bool = False) -> None:
    """A finding that answers the notebook's question. `lead` puts it on the first line of the report."""
    _say(text, "verdict", tone, lead)


def _say(text: str, kind: str, tone: str = "note", lead: bool = False) -> None:
    display(Finding(text, kind, tone, _session.quick, lead).data(), raw=True)


def table(rows: pd.DataFrame | Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
    """Show rows as an HTML table: numbers to three digits, all text escaped."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    frame = frame if columns is None else frame[list(columns)]
    index = not isinstance(frame.index, pd.RangeIndex)
    body = frame.map(_cell).to_html(index=index, index_names=False, escape=True, border=0, justify="left")
    body = re.sub(r"<(td|th)>", r'<\1 style="text-align:left">', body)
    display({"text/html": body, "text/plain": frame.to_string(index=index)}, raw=True)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def figure(drawing: Figure, caption: str, index: bool = False) -> None:
    """Show a matplotlib figure as an image with a caption; `index` shows it on the report's first page, too."""
    buffer = io.BytesIO()
    drawing.savefig(buffer, format="png", dpi=DPI)
    data = {"image/png": base64.b64encode(buffer.getvalue()).decode("ascii"), "text/plain": caption}
    metadata = {"image/png": {"alt": caption}, **({FIGURE: caption} if index else {})}
    display(data, raw=True, metadata=metadata)


def source(thing: Any, start: str = "", stop: str = "") -> None:
    """Show the library's own source: of a class or function, or of a C file given as a path.

    Of a file, from the first line that begins with `start` to the one before that which begins with `stop`.
    """
    lexer = CLexer() if isinstance(thing, Path) else PythonLexer()
    text = thing.read_text(encoding="utf-8") if isinstance(thing, Path) else inspect.getsource(thing)
    if start:
        text = text[text.index(f"\n{start}") + 1 :]
    if stop:
        text = text[: text.index(f"\n{stop}") + 1]
    formatter = HtmlFormatter(noclasses=True, prestyles=PRE)
    display({"text/html": highlight(text, lexer, formatter), "text/plain": text}, raw=True)


def source_diff(before: Any, after: Any) -> None:
    """Show what changes from one class or function to another, as a diff of their sources."""
    sources = [inspect.getsource(each).splitlines() for each in (before, after)]
    names = {"fromfile": before.__qualname__, "tofile": after.__qualname__}
    lines = list(difflib.unified_diff(sources[0], sources[1], **names, lineterm="", n=2))
    body = "".join(f'<div style="{CHANGED.get(line[:1], "")}">{html.escape(line) or " "}</div>' for line in lines)
    display({"text/html": f'<pre style="{PRE}">{body}</pre>', "text/plain": "\n".join(lines)}, raw=True)


def stderr_of(call: Callable[[], object]) -> str:
    """What a call says on standard error, shown as text."""
    caught = io.StringIO()
    with contextlib.redirect_stderr(caught):
        call()
    said = caught.getvalue().strip()
    display({"text/plain": said or "(nothing was said)"}, raw=True)
    return said


def outcomes(calls: Mapping[str, Callable[[], object]]) -> None:
    """Show what each call gives, or the error that it raises, beside its label."""
    table([{"": label, "gives": _outcome(call)} for label, call in calls.items()])


def _outcome(call: Callable[[], object]) -> str:
    try:
        return str(call())
    except Exception as error:  # whatever it is, it is what is to be shown
        return f"{type(error).__name__}: {error}".splitlines()[0]


def keep(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows as a DataFrame. In a report they are also appended to its rows.jsonl."""
    rows = list(rows)
    path = os.environ.get(ROWS_VARIABLE)
    if path:
        results.append(path, rows)
    return pd.DataFrame(rows)
