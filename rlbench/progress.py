"""Progress of anything that takes over two seconds: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import TextIO

LINE_EVERY_S = 5.0


def duration(seconds: float) -> str:
    """1:05 or 2:03:04."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Progress:
    """Counts towards `total` and shows rate and time left on standard error.

    Args:
        total: units to be done.
        label: what is being done.
        unit: what is counted.
        shown: False shows nothing; None shows a bar on a terminal and lines elsewhere.
    """

    def __init__(
        self, total: int, label: str, unit: str = "steps", shown: bool | None = None, stream: TextIO | None = None
    ) -> None:
        self.total, self.label, self.unit = total, label, unit
        self.stream = stream or sys.stderr
        self.done = 0
        self.note = ""
        self.start = time.perf_counter()
        self.last_line = self.start
        self.lines = shown is not False
        self.bar = None
        if shown is not False and self.stream.isatty():
            with contextlib.suppress(ModuleNotFoundError):  # a bare machine: lines on a terminal, too
                from tqdm import tqdm

                self.bar = tqdm(total=total, desc=label, unit=f" {unit}", file=self.stream, dynamic_ncols=True)
                self.lines = False

    def advance(self, units: int, note: str = "") -> None:
        """Count `units` more; `note` is shown behind the rate."""
        self.done += units
        self.note = note or self.note
        if self.bar is not None:
            if note:
                self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(units)
        elif self.lines and time.perf_counter() - self.last_line > LINE_EVERY_S:
            self.last_line = time.perf_counter()
            print(self.line(), file=self.stream, flush=True)

    @property
    def rate(self) -> float:
        """Units a second since the start."""
        return self.done / max(1e-9, time.perf_counter() - self.start)

    @property
    def seconds_left(self) -> float:
        return (self.total - self.done) / self.rate if self.done else float("inf")

    def line(self) -> str:
        left = "?" if not self.done else duration(self.seconds_left)
        share = 100 * self.done / max(1, self.total)
        tail = f", {self.note}" if self.note else ""
        rate = f"{self.rate:,.0f}" if self.rate >= 10 else f"{self.rate:.2g}"
        return f"{self.label}: {self.done:,} of {self.total:,} {self.unit} ({share:.0f} %), {rate}/s, {left} left{tail}"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.close()
