"""Rows of this check that were recorded on other machines, to be shown beside a reader's own."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from rlbench import results
from rlbench.gpu_check.check import KIND

ROOT = Path(__file__).resolve().parents[2]


def recorded(section: str, folder: Path = ROOT / results.RECORDS, besides: str = "") -> pd.DataFrame:
    """The newest recorded rows of a section, of each machine with a GPU but `besides`; an empty frame where there are none."""
    files = {path.parent.name: path for path in sorted(folder.glob(f"*/*-{KIND}.json"))}  # names begin with the time
    frames = [results.load(path) for machine, path in sorted(files.items()) if machine != besides]
    rows = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"section": [], "machine": [], "gpu": []})
    return rows[(rows["section"] == section) & rows["gpu"].notna()].reset_index(drop=True)
