"""Episodes as NumPy's archive of arrays."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlbench.episodes.checks import EpisodeError


def to_bytes(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> bytes:
    """The file. What is known beside the arrays lies in it as arrays without a dimension."""
    out = io.BytesIO()
    np.savez(out, **arrays, **{name: np.array(value) for name, value in about.items()})
    return out.getvalue()


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays, what else is known), or an EpisodeError that names the array; nothing pickled is read."""
    name = "the file"
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {}
            for name in archive.files:
                found[name] = archive[name]
    except Exception as error:  # a damaged archive raises whatever it runs into, of a dozen kinds
        raise EpisodeError(
            f"{name} cannot be read: it is cut short, damaged, or no archive of arrays ({error})."
        ) from error
    return {k: v for k, v in found.items() if v.ndim}, {k: v.item() for k, v in found.items() if not v.ndim}
