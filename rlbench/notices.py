"""What a reader should know, said once a process."""

from __future__ import annotations

import sys
from functools import cache


@cache
def say_once(sentence: str) -> None:
    """Print a sentence to standard error, the first time that it is said."""
    print(sentence, file=sys.stderr)
