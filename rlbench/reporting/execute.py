"""Run one notebook through papermill and say how it went."""

from __future__ import annotations

import copy
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from rlbench.files import write_text
from rlbench.reporting.kernel import kernel_class
from rlbench.reporting.parameters import Parameter, of_notebook

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
TRACEBACK_LINES = 12
PROGRESS = re.compile(r"^.*: [\d,]+ of [\d,]+ .*(left|/s).*\n?", re.MULTILINE)  # as `progress.Progress` writes them


@dataclass
class Run:
    """One notebook of a report. `executed` is None until it has run; `failure` is the end of its traceback, or None."""

    name: str
    source: Any  # the stored notebook
    values: dict[str, Any] = field(default_factory=dict)  # injected
    executed: Any = None
    seconds: float = 0.0
    failure: str | None = None
    interrupted: bool = False

    @property
    def state(self) -> str:
        """done, failed, interrupted or not run."""
        if self.executed is None:
            return "not run"
        return "interrupted" if self.interrupted else "done" if self.failure is None else "failed"

    @property
    def parameters(self) -> dict[str, Parameter]:
        return of_notebook(self.source, self.name)

    @property
    def title(self) -> str:
        """The first heading, which is the notebook's question."""
        for cell in self.source.cells:
            if cell.cell_type == "markdown" and cell.source.startswith("# "):
                return cell.source.splitlines()[0][2:].strip()
        return self.name


class ProgressLines:
    """A stream for a kernel's standard error that hands on its lines of progress."""

    def __init__(self, hand_on: Callable[[str], None]) -> None:
        self.hand_on = hand_on

    def write(self, text: str) -> None:
        for found in PROGRESS.finditer(text):
            self.hand_on(found.group().strip())

    def flush(self) -> None:
        """Nothing is held back."""


def execute(
    run: Run,
    folder: Path,
    where: Path,
    limit_s: float,
    on_cell: Callable[[int, int], None] | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> None:
    """Run it in the folder `where`, write `folder/<name>.ipynb`, fill in `executed`, `seconds` and `failure`.

    `limit_s` bounds the whole notebook. `on_cell(done, cells)` is called after each cell, `on_progress(line)` for each
    line of progress within one. A notebook that fails, takes too long, or is interrupted, is kept up to there.
    """
    import papermill
    from nbclient.exceptions import CellTimeoutError

    logging.getLogger("papermill").setLevel(logging.ERROR)
    path = folder / f"{run.name}.ipynb"
    start = time.monotonic()
    notebook = copy.deepcopy(run.source)
    cells = len(notebook.cells)
    try:
        papermill.execute_notebook(
            notebook,
            str(path).replace("{", "{{").replace("}", "}}"),  # papermill formats paths
            parameters=run.values,
            kernel_name="python3",
            progress_bar=False,
            cwd=str(where),
            stderr_file=ProgressLines(on_progress) if on_progress else None,
            kernel_manager_class=kernel_class(folder / "rows.jsonl"),
            timeout_func=lambda cell: max(0.1, limit_s - (time.monotonic() - start)),
            on_cell_complete=lambda cell, cell_index: on_cell(min(cell_index + 1, cells), cells) if on_cell else None,
        )
    except papermill.PapermillExecutionError as error:
        run.failure = tail("\n".join(error.traceback))
    except CellTimeoutError:
        run.failure = f"stopped: the notebook took longer than its limit of {limit_s:,.0f} seconds."
    except KeyboardInterrupt:  # papermill has ended the kernel and written what there is
        run.failure, run.interrupted = "interrupted: what follows was not run.", True
    except Exception as error:  # a dead kernel, or one that does not start: the other notebooks can still run
        run.failure = tail(f"{type(error).__name__}: {error}")
    run.seconds = time.monotonic() - start
    run.executed = nbformat.read(path, as_version=4) if path.exists() else notebook
    run.executed.metadata.pop("papermill", None)  # times and absolute paths of this machine
    drop_progress(run.executed)
    write_text(path, nbformat.writes(run.executed))


def drop_progress(notebook: Any) -> None:
    """Take the lines of progress out of standard error: they were for whoever waited."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                output.text = PROGRESS.sub("", output.text)
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("text", "-")]


def tail(traceback: str) -> str:
    """The last lines of a traceback, without terminal colours."""
    lines = ANSI.sub("", traceback).rstrip().splitlines()
    return "\n".join(lines[-TRACEBACK_LINES:])


def defaults_and_injected(run: Run) -> list[Mapping[str, Any]]:
    """A row for each parameter: name, value in effect, its source, its kind and its meaning."""
    return [
        {
            "name": p.name,
            "value": run.values.get(p.name, p.default),
            "source": "injected" if p.name in run.values else "default",
            "type": p.kind,
            "meaning": p.help,
        }
        for p in run.parameters.values()
    ]
