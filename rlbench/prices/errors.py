"""The one exception for prices that cannot be used, and the one place that prints what was mended."""

import sys
from collections.abc import Iterable

_told: set[str] = set()


class PriceError(ValueError):
    """Prices were refused. The text names the source, the row, what was found and what to do."""


def tell(source: str, notices: Iterable[str]) -> None:
    """Print each notice on stderr, once a process for each source and text."""
    for notice in notices:
        line = f"{source}: {notice}"
        if line not in _told:
            _told.add(line)
            print(line, file=sys.stderr)
