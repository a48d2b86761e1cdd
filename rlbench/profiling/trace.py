"""The trace pass: a few steps under torch's profiler, and the Chrome trace of them."""

from __future__ import annotations

import json
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from rlbench.files import write_bytes
from rlbench.profiling.records import Trace
from rlbench.profiling.trace_events import copies, device_part, operators, span

BYTES_AN_EVENT = 420  # in the file, by looking at some
LARGEST_FILE = 50e6
LOG_LEVEL, NOTHING_TOLD = "KINETO_LOG_LEVEL", "99"


@contextmanager
def quiet() -> Iterator[None]:
    """Kineto tells of its start and its end on standard error, unless it was told not to before its first use; some versions
    warn that only the last cycle's events are kept, which is what is wanted here."""
    told = LOG_LEVEL in os.environ
    os.environ.setdefault(LOG_LEVEL, NOTHING_TOLD)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        if not told:
            del os.environ[LOG_LEVEL]


class Tracing:
    """Traces between `start` and `stop`. Started again, it begins anew: the last stretch is the one that is kept.

    Attributes:
        why_not: why nothing was traced, "" otherwise; somebody else's profiler is left alone.
    """

    def __init__(self, device: str | torch.device, max_bytes: float = LARGEST_FILE) -> None:
        self.device, self.max_bytes = torch.device(device), max_bytes
        self.steps, self.seconds, self.why_not = 0, 0.0, ""
        self._profiler: Any = None
        self._document: dict[str, Any] = {}

    def start(self) -> None:
        if torch.autograd._profiler_enabled():
            self.why_not = "another profiler of torch is running"
            return
        kinds = [torch.profiler.ProfilerActivity.CPU]
        if self.device.type == "cuda":
            kinds.append(torch.profiler.ProfilerActivity.CUDA)
        self.steps = 0
        self._profiler = torch.profiler.profile(activities=kinds)
        with quiet():
            self._profiler.start()
        self._begun = time.perf_counter()

    def step(self) -> None:
        self.steps += 1

    @property
    def full(self) -> bool:
        """Whether there is nothing more to see: no profiler to be had, or seconds enough to fill the file at a usual rate."""
        busy_rate = 150_000  # operators a second, more than Python starts
        if self._profiler is None:
            return True
        return (time.perf_counter() - self._begun) * busy_rate * BYTES_AN_EVENT > self.max_bytes

    def stop(self) -> None:
        if self._profiler is None:
            return
        self.seconds = time.perf_counter() - self._begun
        profiler, self._profiler = self._profiler, None
        with quiet():
            profiler.stop()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(path))
            self._document = json.loads(path.read_text(encoding="utf-8", errors="replace"))

    @property
    def events(self) -> list[dict[str, Any]]:
        return self._document.get("traceEvents", [])

    def trace(self, seconds_per_step: float | None) -> Trace | None:
        """What the trace shows; None without one. `seconds_per_step`: of a step that nobody traces, None if unknown."""
        if not self.events:
            return None
        usual = self.steps * seconds_per_step if seconds_per_step else None
        whole = span(self.events)
        return Trace(
            steps=self.steps,
            seconds=self.seconds,
            slowdown=self.seconds / usual if usual else None,
            operators=operators(self.events),
            copies=copies(self.events, whole),
            **device_part(self.events, whole),
        )

    def save(self, path: str | Path) -> None:
        """Write the Chrome trace, for Perfetto or chrome://tracing. Where it would be larger than `max_bytes`, what came last is
        left out.

        Raises:
            RuntimeError: nothing was traced.
        """
        if not self.events:
            raise RuntimeError(f"there is no trace to save: {self.why_not or 'the run was over before the trace pass'}")
        write_bytes(path, self._within_limit())

    def _within_limit(self) -> bytes:
        document, events = dict(self._document), sorted(self.events, key=lambda event: event.get("ts", 0))
        text = json.dumps(document, separators=(",", ":")).encode()
        while len(text) > self.max_bytes and events:
            events = events[: int(len(events) * min(0.95, 0.97 * self.max_bytes / len(text)))]
            text = json.dumps({**document, "traceEvents": events}, separators=(",", ":")).encode()
        return text
