"""A panel's results as ordinary notebook outputs: a picture and tables that a stored copy keeps."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pandas as pd

from rlbench.panel.bench import Bench
from rlbench.panel.ladder import draw_ladder, draw_state, png


class Results:
    """The ladder and the tables below a panel, replaced in place; any thread may call `update`."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.handles: list[Any] = []
        self.drawn = 0.0  # time of the last drawing
        self.lock = threading.Lock()

    def show(self) -> None:
        """Open the places in the cell that runs now."""
        from IPython.display import display

        self.handles = [display(content, display_id=True) for content in self.contents()]

    def update(self) -> None:
        with self.lock:
            for handle, content in zip(self.handles, self.contents(), strict=False):
                handle.update(content)
            self.drawn = time.perf_counter()

    def contents(self) -> tuple[Any, Any, Any]:
        """(ladder, comparisons, runs); nothing visible where there is nothing yet."""
        from IPython.display import HTML, Image

        rows = self.bench.table().to_dict("records")
        ladder = Image(png(draw_ladder(rows)), format="png") if rows else HTML("")
        return ladder, _shown(comparison_table(self.bench)), _shown(run_table(self.bench))


def comparison_table(bench: Bench) -> pd.DataFrame:
    """`Bench.table` as text, short enough for a page."""
    return pd.DataFrame(
        {
            "choices": row["choices"],
            "ratio": f"{row['ratio']:.3f}",
            "95 % interval": _span(row["ratio_low"], row["ratio_high"]),
            "A/A band": _span(row["aa_low"], row["aa_high"]),
            "verdict": row["verdict"],
            "return (plain)": f"{_number(row['mean_return'])} ({_number(row['plain_return'])})",
            "steps/s (plain)": f"{row['sps']:,.0f} ({row['plain_sps']:,.0f})",
            "rounds": row["rounds"],
            "note": row["note"],
        }
        for row in bench.table().to_dict("records")
    )


def run_table(bench: Bench) -> pd.DataFrame:
    """`Bench.run_table` as text."""
    return pd.DataFrame(
        {
            "run": row["choices"],
            "steps": f"{row['steps']:,}",
            "steps/s": f"{row['sps']:,.0f}",
            "seconds": f"{row['train_s']:.2f}",
            "return": _number(row["mean_return"]),
            "episodes": row["episodes"],
            "note": row["note"],
        }
        for row in bench.run_table().to_dict("records")
    )


def _number(value: float) -> str:
    return "n/a" if value != value else f"{value:.4g}"


def _span(low: float, high: float) -> str:
    return f"[{low:.3f}, {high:.3f}]"


def _shown(table: pd.DataFrame) -> Any:
    """The table without its index; nothing visible for an empty one."""
    from IPython.display import HTML

    return _Table(table) if len(table) else HTML("")


class _Table:
    """A DataFrame displayed as HTML (escaped), and as text where there is no HTML."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    def _repr_html_(self) -> str:
        body = self.table.to_html(index=False, border=0, escape=True, justify="left")
        return re.sub(r"<(td|th)>", r'<\1 style="text-align:left">', body)

    def __repr__(self) -> str:
        return self.table.to_string(index=False)


def still(bench: Bench) -> None:
    """Display the state, and the ladder if there is one, as a picture and as tables."""
    from IPython.display import Image, display

    figure = draw_state(
        bench.title, bench.state_rows(), bench.problem() or bench.advice, bench.table().to_dict("records")
    )
    display(Image(png(figure), format="png"))
    for table in (bench.choices_table(), comparison_table(bench), run_table(bench)):
        if len(table):
            display(_shown(table))
