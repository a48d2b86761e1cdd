"""The README's table, written from recorded rows: no number in it is typed by hand.

`python -m rlbench.readme` reads reports/measurements/ and rewrites what stands between the two marks in README.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from rlbench import results
from rlbench.files import write_text
from rlbench.stats import CITABLE_SEEDS
from rlbench.study import summarise

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
HEAD = "| env | choices | env steps a second | time, plain over this | return of the final policy | learns the same? |"


def table(folder: Path = ROOT / "reports" / "measurements") -> str:
    """Markdown of the newest recorded study of each env and machine, and where its rows are.

    Raises:
        FileNotFoundError: where nothing was recorded.
    """
    files = sorted(folder.glob("*/*-training*.json"))
    if not files:
        raise FileNotFoundError(f"{folder} holds no recorded study: run `rlbench study --record` first.")
    rows = results.load(*files)
    newest = rows[rows["study"] == rows.groupby(["env", "machine"])["study"].transform("max")]
    sums = summarise(newest)
    lines = [HEAD, "|" + "---|" * HEAD.count(" | ") + "---|"]
    lines += [_line(row) for _, row in sums.iterrows()]
    sources = [_source(study) for _, study in newest.groupby("study", sort=True)]
    return "\n".join([*lines, "", *sources])


def _line(row: pd.Series) -> str:
    if isinstance(row.not_measured, str):
        return f"| {row.env} | {row.label} | - | not measured: {row.not_measured} | - | - |"
    ratio = f"{row.sps_ratio:.2f} [{row.sps_ratio_low:.2f}, {row.sps_ratio_high:.2f}]"
    if row.speed == "baseline":
        ratio = "1 (baseline)"
    elif row.speed == "no difference seen":
        ratio += ", no difference seen"
    returns = "-"
    if row.return_iqm == row.return_iqm:  # not NaN
        returns = f"{row.return_iqm:.4g} [{row.return_low:.4g}, {row.return_high:.4g}]"
    return f"| {row.env} | {row.label} | {row.sps:,.0f} | {ratio} | {returns} | {row.learns} |"


def _source(rows: pd.DataFrame) -> str:
    """Where, how and with what the rows of one study were measured."""
    first = rows.iloc[0]
    steps = ", ".join(f"{n:,.0f}" for n in sorted(rows["env_steps"].dropna().unique()))
    seeds = rows["seed"].nunique()
    quick = f" {seeds} seeds are too few to cite." if seeds < CITABLE_SEEDS else ""
    return (
        f"{first['env']}: measured on {first['machine']} ({first['cpu']}), {first['threads']} torch thread(s), "
        f"torch {first['versions.torch']}, {seeds} seeds of {steps} env steps, interleaved in pairs; medians with 95 % "
        f"bootstrap intervals, returns as interquartile means.{quick} "
        f"Rows: [reports/measurements](reports/measurements); command: `{first['command']}`."
    )


def rewrite(readme: Path = ROOT / "README.md", text: str | None = None) -> bool:
    """Put the table between the marks; returns whether that changed the file."""
    old = readme.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise ValueError(f"{readme.name} must hold the marks {BEGIN} and {END}, once each and in this order.")
    before, _, rest = old.partition(BEGIN)
    after = rest.partition(END)[2]
    new = f"{before}{BEGIN}\n{table() if text is None else text}\n{END}{after}"
    if new != old:
        write_text(readme, new)
    return new != old


if __name__ == "__main__":
    print("README.md rewritten" if rewrite() else "README.md was up to date", file=sys.stderr)
