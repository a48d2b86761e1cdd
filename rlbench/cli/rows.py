"""Rows of a measurement on their way to files: each is appended as soon as it is known, so that nothing is lost."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_rows(parser: argparse.ArgumentParser, default: Path) -> None:
    parser.add_argument(
        "--out", type=Path, default=default, metavar="FILE", help=f"append the rows, as JSON lines (default: {default})"
    )
    parser.add_argument(
        "--record", action="store_true", help="also write reports/measurements/<machine>/…json, which is committed"
    )


class Rows:
    """Appends rows to `--out`; with `--record`, writes all of them to a file of their own at the end."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.path, self.record, self.kept = args.out, args.record, []
        if self.path.is_dir():
            raise ValueError(f"--out {self.path} is a folder: name a file, such as {self.path / 'rows.jsonl'}.")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:  # fails now, not after the first row was measured
            empty = file.tell() == 0
        if empty:
            self.path.unlink()

    def add(self, row: dict[str, object]) -> None:
        from rlbench.results import append

        append(self.path, [row])
        self.kept.append(row)

    def close(self) -> str:
        """Record if asked to; says in one line where the rows are."""
        from rlbench.results import record

        text = f"{len(self.kept)} rows appended to {self.path}" if self.kept else "no rows"
        if self.record and self.kept:
            text += f", recorded in {record(self.kept, str(self.kept[0]['machine']))}"
        return text


class Stop:
    """A request to stop: called by an interrupt, asked by a measurement."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self) -> None:
        self.requested = True

    def asked(self) -> bool:
        return self.requested
