"""A panel's results as ordinary notebook outputs: a picture and tables that a stored copy keeps."""

from __future__ import annotations

import threading
import time
from typing import Any

import pandas as pd

from rlbench.ladder import draw_ladder, draw_state, png
from rlbench.panel import Bench

DECIMALS = {"ratio": 3, "train_s": 3, "sps": 0, "mean_return": 2}


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

        comparisons, runs = self.bench.table(), self.bench.run_table()
        ladder = Image(png(draw_ladder(comparisons.to_dict("records"))), format="png") if len(comparisons) else HTML("")
        return ladder, _shown(comparisons), _shown(runs)


def _shown(table: pd.DataFrame) -> Any:
    """The table with digits that mean something; nothing visible for an empty one."""
    from IPython.display import HTML

    if not len(table):
        return HTML("")
    digits = {name: next((d for stem, d in DECIMALS.items() if stem in name), 3) for name in table.columns}
    formats = {name: f"{{:,.{digits[name]}f}}".format for name in table.select_dtypes("floating").columns}
    return _Table(table, formats)


class _Table:
    """A DataFrame displayed with given formats, as HTML (escaped) and as text."""

    def __init__(self, table: pd.DataFrame, formats: dict[str, Any]) -> None:
        self.table, self.formats = table, formats

    def _repr_html_(self) -> str:
        return self.table.to_html(index=False, formatters=self.formats, border=0, escape=True, na_rep="")

    def __repr__(self) -> str:
        return self.table.to_string(index=False, formatters=self.formats, na_rep="")


def still(bench: Bench) -> None:
    """Display the state, and the ladder if there is one, as a picture and as tables."""
    from IPython.display import Image, display

    figure = draw_state(
        bench.title, bench.state_rows(), bench.problem() or bench.advice, bench.table().to_dict("records")
    )
    display(Image(png(figure), format="png"))
    for table in (bench.choices_table(), bench.table(), bench.run_table()):
        if len(table):
            display(_shown(table))
