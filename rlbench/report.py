"""Run the notebooks with checked parameters and write a report: executed notebooks, pages, and an index to begin with.

The report needs no server and no network. Its index is written after every notebook, so that whatever ends a run leaves
what was finished. Exit codes: 0 done, 1 a notebook failed (the others' results are kept), 2 the input was refused, and
nothing was run, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat

from rlbench.files import write_text
from rlbench.machine import describe
from rlbench.reporting.execute import Run, execute
from rlbench.reporting.findings import findings
from rlbench.reporting.index import Report, render
from rlbench.reporting.kernel import ROOT
from rlbench.reporting.pages import page
from rlbench.reporting.parameters import ParameterError, assign, read_file
from rlbench.reporting.stream import Stream

NOTEBOOKS = ROOT / "notebooks"
LARGEST = 1_000_000  # bytes of an executed notebook
QUICK_LIMIT_S, FULL_LIMIT_S = 600.0, 6 * 3600.0  # of one whole notebook


def run(
    numbers: Sequence[str | int] | None = None,
    parameters: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    quick: bool = True,
    progress: bool | None = None,
    *,
    notebooks: str | os.PathLike[str] = NOTEBOOKS,
    limit_s: float | None = None,
) -> int:
    """Run notebooks and write a report folder; returns the exit code.

    Args:
        numbers: which ones, as "01", 1 or "01_cpu_or_gpu"; all where left out.
        parameters: values by name, texts being read by the declared type, or the path of a YAML or JSON file of them. A
            name must be declared by every selected notebook; where all run, by at least one.
        out: the folder to write, made if missing; reports/<UTC time> where left out.
        quick: the parameter `quick` of every notebook that declares one, unless `parameters` has it.
        progress: False says nothing while it runs.
        notebooks: the folder of the notebooks.
        limit_s: seconds that a whole notebook may take.
    """
    try:
        runs = select(Path(notebooks), numbers)
        rule = _assign(runs, parameters, quick, everything=numbers is None)
        folder = _folder(out)
    except ParameterError as error:
        print(f"rlbench report: {error}", file=sys.stderr)
        return 2
    machine = describe()
    with Stream([len(each.source.cells) for each in runs], shown=progress is not False) as stream:
        for each in runs:
            stream.begin(each.name)
            limit = limit_s or (QUICK_LIMIT_S if each.values.get("quick", quick) else FULL_LIMIT_S)
            execute(each, folder, Path(notebooks), limit, stream.cell, stream.within)
            write_text(folder / f"{each.name}.html", page(each.executed, each.title))
            stream.end(each.seconds, each.failure)
            _write_index(runs, folder, rule, machine)
            if each.interrupted:
                break
    stream.say(f"report: {_shown(folder / 'index.html')}")
    return 130 if each.interrupted else 1 if any(each.failure is not None for each in runs) else 0


def select(folder: Path, numbers: Sequence[str | int] | None) -> list[Run]:
    """The stored notebooks, in order of number. Raises ParameterError for one that is not there or not readable."""
    paths = {path.stem: path for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))}
    if not paths:
        raise ParameterError(f"there are no notebooks in {folder}: run from a checkout of the repository.")
    wanted = list(paths)
    if numbers is not None:
        wanted = sorted({_find(str(number), paths) for number in numbers})
    if not wanted:
        raise ParameterError(f"no notebook was selected; there are {', '.join(paths)}.")
    runs = []
    for name in wanted:
        try:
            runs.append(Run(name, nbformat.read(paths[name], as_version=4)))
        except Exception as error:  # nbformat raises half a dozen kinds for a broken file
            raise ParameterError(f"{paths[name].name} is not a readable notebook ({error}).") from None
    return runs


def _find(number: str, paths: Mapping[str, Path]) -> str:
    padded = number.zfill(2) if number.isdigit() else number.removesuffix(".ipynb")
    for name in paths:
        if padded in (name, name[:2]):
            return name
    raise ParameterError(f"there is no notebook {number!r}; there are {', '.join(paths)}.")


def _assign(runs: Sequence[Run], parameters: Any, quick: bool, everything: bool) -> str:
    """Fill in each run's values; returns the sentence that says what went where."""
    given = read_file(parameters) if isinstance(parameters, str | os.PathLike) else dict(parameters or {})
    known = {each.name: each.parameters for each in runs}
    assigned = assign(given, known, everything)
    for each in runs:
        each.values = {**({"quick": quick} if "quick" in known[each.name] else {}), **assigned[each.name]}
    rule = "A given parameter must be declared by " + (
        "at least one notebook" if everything else "every notebook selected"
    )
    taken = [f"{name} to {', '.join(n for n in assigned if name in assigned[n])}" for name in given]
    return f"{rule}. " + (f"Given: {'; '.join(taken)}." if taken else "None was given but `quick`.")


def _folder(out: str | os.PathLike[str] | None) -> Path:
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    base = ROOT if (ROOT / "notebooks").is_dir() else Path.cwd()
    folder = (Path(out) if out is not None else base / "reports" / stamp).resolve()
    if out is not None and (folder / "index.html").exists():
        raise ParameterError(f"{out} holds a report already: name another folder, or remove it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"the folder {out} cannot be made ({error}).") from None
    return folder


def _write_index(runs: Sequence[Run], folder: Path, rule: str, machine: Any) -> None:
    warnings = list(machine.warnings())
    for each in (each for each in runs if each.executed is not None):
        warnings += [f"{each.name}: {f.text}" for f in findings(each.executed) if f.kind == "warning"]
        size = (folder / f"{each.name}.ipynb").stat().st_size
        if size > LARGEST:
            warnings.append(f"{each.name}: the executed copy has {size:,} bytes, more than {LARGEST:,}.")
    report = Report(
        runs=runs,
        quick=any(each.values.get("quick", False) for each in runs),
        time=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        card=machine.card(),
        warnings=warnings,
        rule=rule,
        has_rows=(folder / "rows.jsonl").exists(),
    )
    write_text(folder / "index.html", render(report))


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
