"""A training run kept in a folder: what was set, what happened, what was learnt."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path
from typing import Any

from rlbench.cli.output import plain


def check_folder(folder: Path | None, force: bool) -> None:
    """Make the folder, now rather than after the training; refuse one that holds something, unless forced.

    Raises ValueError that names it, or OSError where it cannot be made or written to.
    """
    if folder is None:
        if force:
            raise ValueError("--force belongs to --out DIR, which was not given.")
        return
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {folder} is a file: name a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise ValueError(
            f"--out {folder} is not empty: name another folder, or add --force to overwrite the run in it."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission to write", str(folder))


def keep(folder: Path, history: Any, summary: dict[str, Any], trainer: Any) -> None:
    """Write config.json, choices.yaml, history.csv, episodes.csv, evaluations.csv, summary.json and weights.pt.

    choices.yaml has the slots that the trainer used: with the same env and settings `--choices FILE` takes it. weights.pt is
    a dict of plain CPU tensors: `torch.load(path, weights_only=True)` reads it.
    """
    import torch

    from rlbench.files import write_bytes, write_text

    write_text(folder / "config.json", json.dumps(plain(history.config), indent=2) + "\n")
    trainer.choices.save(folder / "choices.yaml", trainer.config, trainer.device, trainer.source)
    frames = {"history": history.to_frame(), "episodes": history.episodes, "evaluations": history.evaluations}
    for name, frame in frames.items():
        write_text(folder / f"{name}.csv", frame.to_csv(index=False))
    write_text(folder / "summary.json", json.dumps(plain(summary), indent=2, allow_nan=False) + "\n")
    weights = io.BytesIO()
    torch.save(history.weights, weights)
    write_bytes(folder / "weights.pt", weights.getvalue())
