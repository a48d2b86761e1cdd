"""What a command says: results on standard output, talk on standard error, refusals in one sentence."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130


class Refusal(ValueError):
    """Input that a command cannot use, in one sentence."""


@dataclass(frozen=True)
class Output:
    """Where a command's words go.

    With `json`, the last line of standard output is one JSON document and all else goes to standard error. `quiet`
    leaves out talk and progress; results, refusals, and notices of what is done otherwise than asked for are always given.
    """

    json: bool = False
    quiet: bool = False

    @property
    def progress(self) -> bool | None:
        """For `Progress` and the trainers: False hides it."""
        return False if self.quiet else None

    def say(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def result(self, text: str, document: Any) -> None:
        """The outcome: text for people, a document for programs."""
        if self.json:
            self.say(text)
            print(json.dumps(plain(document), allow_nan=False), flush=True)
        else:
            print(text, flush=True)


def plain(value: Any) -> Any:
    """What JSON can hold: tuples as lists, NumPy's numbers as Python's, NaN and infinities as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def refusing() -> Iterator[None]:
    """While input is read: whatever cannot be used there is the input's fault, and is refused in one sentence."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise Refusal(sentence(error)) from error
    except Exception as error:
        if type(error).__module__.startswith("gymnasium.error"):  # known without importing Gymnasium
            raise Refusal(sentence(error)) from error
        raise


@contextmanager
def plain_warnings() -> Iterator[None]:
    """While open, a warning is a line on standard error, without the place in the code that gave it."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *rest, **more: print(f"rlbench: {message}", file=sys.stderr, flush=True)
        yield


def sentence(error: BaseException) -> str:
    """An error's message on one line; an OSError as "name: what is wrong"."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__
