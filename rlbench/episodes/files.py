"""Episodes on disk: `.npz` (NumPy alone) or `.parquet` (a row a step, which other tools read; needs pyarrow).

Nothing in either is pickled. A file is written under another name, flushed, then renamed; and what is loaded is checked as if it
had just been recorded, so that a file is read as it was written or refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlbench.actions import ActionSets
from rlbench.episodes import npz, parquet
from rlbench.episodes.checks import EpisodeError
from rlbench.episodes.container import STEP_FIELDS, Episodes
from rlbench.files import write_bytes

VERSION = 1  # of what is in a file
# What a file holds of each field; ids as the unsigned numbers that they are.
ARRAYS = {
    "obs": "float32",
    "ids": "uint64",
    "offsets": "int64",
    "choice": "int64",
    "log_prob": "float32",
    "reward": "float32",
    "terminated": "bool",
    "truncated": "bool",
    "last_obs": "float32",
    "bounds": "int64",
}
ABOUT = {"version": int, "game": str, "alternating": bool, "behaviour": bool}
Write = Callable[[Mapping[str, np.ndarray], Mapping[str, Any]], bytes]
Read = Callable[[Path], tuple[dict[str, np.ndarray], dict[str, Any]]]
FORMATS: dict[str, tuple[Write, Read]] = {
    ".npz": (npz.to_bytes, npz.read),
    ".parquet": (parquet.to_bytes, parquet.read),
}


def save(episodes: Episodes, path: str | os.PathLike[str]) -> Path:
    """Write episodes to `path`, in the format that its ending names. Returns the path."""
    path = Path(path)
    write, _ = _format(path)
    fields = {name: getattr(episodes, name) for name in (*STEP_FIELDS, "last_obs", "bounds")}
    fields |= episodes.legal._asdict()
    arrays = {name: tensor.cpu().numpy() for name, tensor in fields.items()}  # sync: a file is the host's
    arrays["ids"] = arrays["ids"].view(np.uint64)
    about = {"version": VERSION, **{name: getattr(episodes, name) for name in ("game", "alternating", "behaviour")}}
    return write_bytes(path, write(arrays, about))


def load(path: str | os.PathLike[str], device: str | torch.device = "cpu") -> Episodes:
    """Episodes as they were saved.

    Raises:
        EpisodeError: naming the file and the field: a file cut short, a missing column, another type, offsets that do not fit,
            a choice that is not there, ….
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    _, read = _format(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        arrays, about = read(path)
        _check_kinds(arrays, about)
        tensors = {name: torch.from_numpy(arrays[name]).to(device) for name in ARRAYS if name not in ("ids", "offsets")}
        ids, offsets = arrays["ids"].view(np.int64), arrays["offsets"]
        legal = ActionSets(torch.from_numpy(ids), torch.from_numpy(offsets)).to(device)
        return Episodes(legal=legal, **tensors, **{name: about[name] for name in ABOUT if name != "version"})
    except EpisodeError as error:
        raise EpisodeError(f"{path}: {error}") from error


def _format(path: Path) -> tuple[Write, Read]:
    if path.suffix.lower() not in FORMATS:
        raise EpisodeError(
            f"{path}: the ending {path.suffix!r} is no format of episodes; accepted: {', '.join(FORMATS)}."
        )
    return FORMATS[path.suffix.lower()]


def _check_kinds(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """That everything is there, in its type. The sizes are for `Episodes` to check."""
    for name, kind in ABOUT.items():
        if type(about.get(name)) is not kind:
            raise EpisodeError(f"{name}: found {about.get(name)!r}; accepted: {kind.__name__}.")
    if about["version"] != VERSION:
        raise EpisodeError(f"version: found {about['version']}; accepted: {VERSION}. A newer rlbench wrote this file.")
    for name, kind in ARRAYS.items():
        if name not in arrays:
            raise EpisodeError(f"{name}: missing; a file of episodes has {', '.join(ARRAYS)}.")
        if arrays[name].dtype != np.dtype(kind):
            raise EpisodeError(f"{name}: of type {arrays[name].dtype}; accepted: {kind}.")
