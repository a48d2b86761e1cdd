"""What a profile hands over: evidence, advice, and ways to show and keep them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlbench.files import write_text
from rlbench.profiling.answer import sentences, with_speed_up
from rlbench.profiling.document import document
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice, Applied, Criterion
from rlbench.profiling.tables import COLUMNS, tables

if TYPE_CHECKING:
    import pandas as pd

SaveTrace = Callable[[Path], None]


class ReportError(RuntimeError):
    """A report was asked for something that it has not got."""


class Report:
    """Filled when the profile ends: after an exception in it too, which `error` then names.

    `print(report)`, or the last line of a notebook's cell, shows it; `to_frame` gives its tables; `save_…` keep it.
    """

    def __init__(self) -> None:
        self._evidence: Evidence | None = None
        self._advice: tuple[Advice, ...] = ()
        self._criteria: tuple[Criterion, ...] = ()
        self._save_trace: SaveTrace | None = None
        self.error = ""
        self.applied: tuple[Applied, ...] = ()  # suggestions that were measured

    def fill(
        self,
        evidence: Evidence,
        advice: Sequence[Advice],
        criteria: Sequence[Criterion],
        save_trace: SaveTrace | None,
        error: str = "",
    ) -> None:
        """The profile is over."""
        self._evidence, self._advice, self._criteria = evidence, tuple(advice), tuple(criteria)
        self._save_trace, self.error = save_trace, error

    @property
    def evidence(self) -> Evidence:
        if self._evidence is None:
            raise ReportError("the profiled block is still running; its report can be read after the `with` statement.")
        return self._evidence

    @property
    def advice(self) -> tuple[Advice, ...]:
        return self._advice if self.evidence else ()

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """The source text's; the speed-up from the suggestions that were measured, once some were."""
        return with_speed_up(self._criteria, self.evidence, self.applied)

    def findings(self) -> tuple[str, ...]:
        """The answer in two or three sentences."""
        return sentences(self.evidence, self.advice)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names that `to_frame` takes."""
        return tuple(COLUMNS)

    def rows(self, table: str = "phases") -> list[dict[str, Any]]:
        """A table's rows."""
        if table not in self.tables:
            raise ValueError(f"there is no table {table!r} in a report: accepted are {', '.join(self.tables)}.")
        return tables(self.evidence, self.advice, self.criteria, self.applied)[table]

    def to_frame(self, table: str = "phases") -> pd.DataFrame:
        """A table as a DataFrame; `tables` lists the names."""
        import pandas as pd

        return pd.DataFrame(self.rows(table), columns=list(COLUMNS.get(table, ())))

    def document(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return document(self)

    def text(self) -> str:
        """For a terminal."""
        from rlbench.profiling.text import summary

        return summary(self)

    def __str__(self) -> str:
        return self.text() if self._evidence is not None else "the profiled block is still running"

    def html(self) -> str:
        """A page that needs neither a network nor a script."""
        from rlbench.profiling.page import page

        return page(self)

    def _repr_html_(self) -> str:
        if self._evidence is None:
            return "<p>The profiled block is still running.</p>"
        from rlbench.profiling.page import fragment

        return fragment(self)

    def save_json(self, path: str | Path, *, force: bool = False) -> None:
        write_text(_free(path, force), json.dumps(self.document(), indent=1, allow_nan=False) + "\n")

    def save_html(self, path: str | Path, *, force: bool = False) -> None:
        write_text(_free(path, force), self.html())

    def save_trace(self, path: str | Path, *, force: bool = False) -> None:
        """The Chrome trace, for Perfetto or chrome://tracing."""
        if self.evidence and self._save_trace is None:
            raise ReportError("there is no trace to save: the run was over before the trace pass, or it was left out.")
        self._save_trace(_free(path, force))

    def save(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """profile.json, profile.html and, where there is one, trace.json; the files that were written."""
        folder = Path(folder)
        made = [folder / "profile.json", folder / "profile.html"]
        made += [folder / "trace.json"] if self._save_trace is not None else []
        for path in made:
            _free(path, force)
        for path, save in zip(made, (self.save_json, self.save_html, self.save_trace), strict=False):
            save(path, force=force)
        return made


def _free(path: str | Path, force: bool) -> Path:
    path = Path(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} is there already; give another name, or force=True (--force) to replace it.")
    return path
