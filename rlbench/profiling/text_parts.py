"""Bars, paragraphs and aligned columns for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from rlbench.profiling.records import Place

WIDTH, BAR = 98, 30
LEAST = 8  # characters that a cut column keeps
BLOCKS = " ▏▎▍▌▋▊▉█"
TOGETHER = "\u00a0"  # where a line must not break


def bar(share: float, width: int = BAR) -> str:
    """A bar of eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")


def titled(title: str, lines: Iterable[str], between: str = "\n") -> str:
    return f"{fill(title)}\n{'-' * min(len(title), WIDTH)}\n" + between.join(lines)


def fill(text: str, indent: str = "") -> str:
    """A paragraph; a number keeps its percent sign."""
    filled = textwrap.fill(
        text.replace(" %", f"{TOGETHER}%"),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + ("   " if not indent else ""),
        break_on_hyphens=False,
    )
    return filled.replace(TOGETHER, " ")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], cut: Sequence[int] = ()) -> list[str]:
    """Aligned columns. So that a line fits, the widest of the columns in `cut` is cut first, any other only when these are
    short already; all may be cut where `cut` is empty."""
    cells = [[" ".join(str(cell).split()) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        may = [i for i in cut if widths[i] > LEAST] or range(len(widths))
        widths[max(may, key=lambda i: widths[i])] -= 1
    return [
        "  ".join(shortened(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def shortened(text: str, width: int) -> str:
    """Cut at the end; a path at its start, so that the line's number stays."""
    if len(text) <= width:
        return text
    return f"…{text[len(text) - width + 1 :]}" if "/" in text and " " not in text else f"{text[: width - 1]}…"


def where(place: Place) -> str:
    """A reader's line beside its place, on one line."""
    path = shortened(f"{place.file}:{place.line}", WIDTH // 2)
    return shortened(f"   {path}  {' '.join(place.source.split())}".rstrip(), WIDTH)
