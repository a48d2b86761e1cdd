"""While a reader's script runs in this process, what is the script's stays so; afterwards the process is ours again."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any, TextIO


@contextlib.contextmanager
def their_own() -> Iterator[None]:
    """Their warnings are shown as Python shows them; a folder or a standard output that they change is changed back.

    What they print ends with a line's end, so that what comes after it stands on lines of its own.
    """
    folder, out, err = os.getcwd(), sys.stdout, sys.stderr
    with warnings.catch_warnings():
        warnings.showwarning = _as_python
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):  # theirs may be closed, or anything at all
                    stream.flush()
            sys.stdout, sys.stderr = out, err
            os.chdir(folder)
            print(flush=True)


def _as_python(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    print(
        warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr, flush=True
    )


def printable(text: str, stream: TextIO) -> str:
    """What the stream can write: a terminal or a pipe may know no bars and no Greek letters."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
