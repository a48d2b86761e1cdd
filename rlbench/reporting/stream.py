"""What a running report says on standard error: notebook n of m, its rate, and how long the rest will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from rlbench.progress import LINE_EVERY_S, duration


class Stream:
    """Counts cells over all notebooks: a line as each notebook begins and ends, and one every few seconds between."""

    def __init__(self, cells: Sequence[int], shown: bool = True, stream: TextIO | None = None) -> None:
        self.cells, self.shown, self.stream = list(cells), shown, stream or sys.stderr
        self.number = 0  # of the notebook that runs, from 1
        self.name = ""
        self.done = 0  # cells of the notebooks before
        self.start = self.last_line = time.monotonic()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def say(self, text: str) -> None:
        """Print one line, unless hidden."""
        if self.shown:
            self.last_line = time.monotonic()
            print(text, file=self.stream, flush=True)

    def begin(self, name: str) -> None:
        """The next notebook begins."""
        self.number, self.name = self.number + 1, name
        left = f"; about {self._left(self.done)} left" if self.done else ""
        self.say(f"notebook {self.number} of {len(self.cells)}: {name}{left}")

    def cell(self, done: int, cells: int) -> None:
        """Cell `done` of the notebook's `cells` is over."""
        if time.monotonic() - self.last_line > LINE_EVERY_S:
            before = self.done + done
            rate = before / max(1e-9, time.monotonic() - self.start)
            place = f"notebook {self.number} of {len(self.cells)}: {self.name}, cell {done} of {cells}"
            self.say(f"{place}, {rate:.1f} cells/s, about {self._left(before)} left")

    def within(self, line: str) -> None:
        """A line of progress of the cell that runs: cells can take most of a report's time."""
        self.say(f"notebook {self.number} of {len(self.cells)}: {self.name}, {line}")

    def end(self, seconds: float, failure: str | None) -> None:
        """The notebook is over."""
        self.done = sum(self.cells[: self.number])
        state = "done" if failure is None else "FAILED"
        self.say(f"notebook {self.number} of {len(self.cells)}: {self.name} {state} in {duration(seconds)}")
        if failure is not None:
            self.say("    " + failure.splitlines()[-1])

    def _left(self, done: int) -> str:
        """Time left at the rate of cells so far: rough, since cells differ."""
        return duration((sum(self.cells) - done) * (time.monotonic() - self.start) / max(1, done))
