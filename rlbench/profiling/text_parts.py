"""Bars, paragraphs and aligned columns for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

WIDTH, BAR = 98, 30
BLOCKS = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int = BAR) -> str:
    """A bar of eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")


def titled(title: str, lines: Iterable[str], between: str = "\n") -> str:
    return f"{fill(title)}\n{'-' * min(len(title), WIDTH)}\n" + between.join(lines)


def fill(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + ("   " if not indent else ""),
        break_long_words=False,
    )


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Aligned columns; the widest is cut so that a line fits."""
    cells = [list(map(str, row)) for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        widths[widths.index(max(widths))] -= 1
    return [
        "  ".join(_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    return f"…{text[len(text) - width + 1 :]}" if "/" in text and " " not in text else f"{text[: width - 1]}…"
