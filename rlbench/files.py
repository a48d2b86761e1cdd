"""Atomic writes: a reader of the file sees the old content or the new one, never half of it.

The data goes to a temporary name in the same folder (a rename is atomic only within one file system), is flushed to
the disk, and is then renamed onto the target. A write that fails leaves the target as it was and no temporary file.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write `text` as UTF-8, with the line ends it has; missing parent folders are made. Returns the path."""
    return write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write `data`; missing parent folders are made. Returns the path. Raises OSError if the disk refuses."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _mode(path: Path) -> int:
    """The permissions the file shall have: those of the file it replaces, else what a plain open() would give."""
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        return 0o644
