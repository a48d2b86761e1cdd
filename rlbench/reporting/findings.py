"""How a finding travels from a cell to the index of the report: as display data with a type of its own."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

MIME = "application/vnd.rlbench.finding+json"
FIGURE = "rlbench_index"  # metadata of an image that the index shows, with its caption
QUICK = "quick: do not cite"
TONES = {"faster": "#009E73", "slower": "#D55E00", "none": "#6B6B6B", "note": "#0072B2", "not measured": "#6B6B6B"}

SIGNS = {"faster": "▲", "slower": "▼", "none": "=", "not measured": "○"}


@dataclass(frozen=True)
class Finding:
    """A sentence computed from data. `lead` puts it on the report's first line."""

    text: str
    kind: str = "finding"  # or "verdict" or "warning"
    tone: str = "note"
    quick: bool = False
    lead: bool = False

    def data(self) -> dict[str, Any]:
        """Display data: our own type for the index, HTML for the notebook, text for everything else."""
        stamp = f" ({QUICK})" if self.quick else ""
        return {MIME: asdict(self), "text/html": self.html(), "text/plain": f"{self.kind}: {self.text}{stamp}"}

    def html(self, stamped: bool = True) -> str:
        """A box with the text escaped; a sign says the same as the colour, and the sentence says it in words."""
        colour = TONES.get(self.tone, TONES["note"])
        sign = SIGNS.get(self.tone, "")
        badge = f'<b style="color:{colour}">{sign}</b> ' if sign else ""
        stamp = f' <span style="color:#8a5a00;font-size:85%">[{QUICK}]</span>' if self.quick and stamped else ""
        weight = "font-weight:600;" if self.kind == "verdict" else ""
        style = (
            f"border-left:5px solid {colour};padding:.4em .8em;margin:.4em 0;background:#f6f7f8;color:#1a1a1a;{weight}"
        )
        return f'<div style="{style}">{badge}{html.escape(self.text)}{stamp}</div>'


def outputs(notebook: Any) -> Iterator[Any]:
    """The outputs of a notebook's code cells, in order."""
    for cell in notebook.cells:
        yield from cell.get("outputs", [])


def findings(notebook: Any) -> list[Finding]:
    """What an executed notebook found."""
    return [Finding(**output["data"][MIME]) for output in outputs(notebook) if MIME in output.get("data", {})]


def index_figures(notebook: Any) -> list[tuple[str, str]]:
    """(base64 PNG, caption) of the images meant for the index."""
    return [
        (output["data"]["image/png"].replace("\n", ""), output["metadata"][FIGURE])
        for output in outputs(notebook)
        if FIGURE in output.get("metadata", {}) and "image/png" in output.get("data", {})
    ]
