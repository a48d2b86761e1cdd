"""Rows in, DataFrame out: every number carries where, when, how and from which code it came.

A row is a flat dict (one level of nesting at most). Running logs are JSON lines, appended to; a recorded measurement
is one JSON file with a row a line, written once and never overwritten.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
import torch

from rlbench.files import write_text
from rlbench.machine import Machine, StealMeter, describe

Row = dict[str, Any]
RECORDS = "reports/measurements"


def new_row(
    kind: str,
    *,
    device: str | torch.device = "cpu",
    seeds: Sequence[int] = (),
    machine: Machine | None = None,
    meter: StealMeter | None = None,
    **fields: object,
) -> Row:
    """A row of `kind` with `fields` and the circumstances of the measurement.

    `meter`, made before the measurement, gives the CPU time stolen *during* it; without it a tenth of a second is
    sampled now. `machine`, described before the measurement, gives its load before we added our own. Raises ValueError
    for a field that would hide one of the circumstances.
    """
    machine = machine or describe(steal_interval_s=0.0 if meter else 0.1)
    commit, dirty = source_version()
    circumstances: Row = {
        "machine": machine.slug,
        "cpu": machine.cpu,
        "gpu": ", ".join(machine.gpus) or None,
        "threads": torch.get_num_threads(),
        "device": str(device),
        "load": machine.load,
        "steal": meter.percent() if meter else machine.steal,
        "versions": dict(versions()),
        "commit": commit,
        "dirty": dirty,
        "seeds": list(seeds),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command(),
    }
    hidden = sorted(set(fields) & {"kind", *circumstances})
    if hidden:
        raise ValueError(f"field(s) {', '.join(hidden)} are filled in by new_row; give them another name")
    return {"kind": kind, **fields, **circumstances}


@cache
def versions() -> Mapping[str, str | None]:
    """Versions of Python and of the packages that matter; None for one that is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in ("torch", "numpy", "pandas", "gymnasium"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    found["torch"] = torch.__version__  # tells the CPU build from the CUDA build
    try:
        found["rlbench"] = metadata.version("rlbench")
    except metadata.PackageNotFoundError:  # run from a copied source tree
        found["rlbench"] = getattr(sys.modules["rlbench"], "__version__", None)
    return found


@cache
def source_version(folder: Path | None = None) -> tuple[str | None, bool | None]:
    """(commit, dirty) of the package's folder; dirty when a file in it differs from the commit or is new there.

    (None, None) without git, outside a repository, and where the repository around does not track the package.
    """
    folder = folder or Path(__file__).parent
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None or not _git(folder, "ls-files", "--", "."):
        return None, None
    return commit, bool(_git(folder, "status", "--porcelain", "--", "."))


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        run = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def command(arguments: Sequence[str] | None = None) -> str:
    """The command line with absolute paths cut to their last part, so that no row tells of a reader's folders."""
    words = list(sys.argv if arguments is None else arguments) or [""]
    program = PurePath(words[0])
    words[0] = program.parent.name if program.name == "__main__.py" else program.name
    return shlex.join(_shorten(word) for word in words)


def _shorten(word: str) -> str:
    option, equals, value = word.rpartition("=")
    return f"{option}{equals}{PurePath(value).name}" if os.path.isabs(value) else word


def append(path: str | os.PathLike[str], rows: Iterable[Mapping[str, object]]) -> Path:
    """Add rows to a JSON-lines file (made if missing); what the file holds is kept."""
    path = Path(path)
    text = "".join(_line(row) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a run was killed in mid-line: start a new line, so that only that row is lost
                text = "\n" + text
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
    return path


def record(
    rows: Sequence[Mapping[str, object]], machine_slug: str, *, folder: str | os.PathLike[str] = RECORDS
) -> Path:
    """Write rows to <folder>/<machine>/<utc-time>-<kind>.json, to be committed; FileExistsError if that exists."""
    if not rows:
        raise ValueError("no rows to record")
    kinds = sorted({str(row.get("kind")) for row in rows})
    if len(kinds) > 1:
        raise ValueError(f"rows of different kinds ({', '.join(kinds)}): record each kind in a file of its own")
    for name in (machine_slug, kinds[0]):
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name) or set(name) == {"."}:
            raise ValueError(f"{name!r} cannot be part of a file name; accepted: letters, digits, '-', '_', '.'")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = Path(folder) / machine_slug / f"{stamp}-{kinds[0]}.json"
    if path.exists():
        raise FileExistsError(f"{path} exists and is not overwritten; record again in a second, or move it away")
    return write_text(path, "[\n" + ",\n".join(_line(row) for row in rows) + "\n]\n")


def load(*sources: str | os.PathLike[str]) -> pd.DataFrame:
    """Rows of .json and .jsonl files, and of all such files below folders, as one tidy frame in order of time.

    Nested dicts become columns like "versions.torch"; "time" is a UTC timestamp; "file" names the source. In a
    folder, JSON files that hold no rows are passed over; named alone, such a file is refused with ValueError.
    """
    rows: list[Row] = []
    for source in sources:
        source = Path(source)
        if source.is_dir():
            inside = [p for p in sorted(source.rglob("*")) if p.suffix in (".json", ".jsonl") and p.is_file()]
            for path in inside:
                rows += _read(path, strict=path.suffix == ".jsonl")
        elif source.exists():
            rows += _read(source, strict=True)
        else:
            raise FileNotFoundError(f"{source}: no such file or folder of results")
    frame = pd.json_normalize(rows)
    for name in frame.columns:
        if bool(frame[name].isna().to_numpy().all()):
            frame[name] = frame[name].astype(np.float64)  # empty numbers stay numbers
    if "time" in frame:
        frame["time"] = pd.to_datetime(frame["time"], utc=True)
        frame = frame.sort_values("time", kind="stable", ignore_index=True)
    return frame


def _read(path: Path, strict: bool) -> list[Row]:
    text = path.read_text(encoding="utf-8")
    rows: list[Row] = []
    pieces = [(0, text)] if path.suffix == ".json" else list(enumerate(text.splitlines(), start=1))
    for number, piece in pieces:
        if not piece.strip():
            continue
        where = f"{path}, line {number}" if number else str(path)
        try:
            found = json.loads(piece)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}: not JSON ({error}); remove or mend it") from None
        found = found if isinstance(found, list) else [found]
        if not all(isinstance(row, dict) and "kind" in row for row in found):
            if strict:
                raise ValueError(f"{where}: not a result row (a JSON object with the key 'kind')")
            return []
        rows += [{**row, "file": path.name} for row in found]
    return rows


def _line(row: Mapping[str, object]) -> str:
    return json.dumps({str(key): _plain(value, str(key)) for key, value in row.items()}, allow_nan=False)


def _plain(value: object, field: str) -> object:
    """What JSON can hold: numpy's numbers as Python's, NaN and infinities as null, tuples and arrays as lists."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, f"{field}.{key}") for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inner, field) for inner in value]
    raise TypeError(f"field {field!r} holds a {type(value).__name__}; accepted: numbers, text, lists, dicts, None")
