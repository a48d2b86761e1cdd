"""The panel's face in ipywidgets. What it does is `panel.Bench`; here are buttons, and where results are shown.

Results go below the widgets as ordinary outputs, a picture and tables, so that a stored notebook keeps them.
"""

from __future__ import annotations

import html
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as w

from rlbench.config import Config
from rlbench.panel.bench import Bench
from rlbench.panel.selection import NAMED
from rlbench.panel.show import Results, still
from rlbench.panel.work import sentence
from rlbench.speedups import Choices

REFRESH_S = 0.25
GREY, BLUE, RED = "#757575", "#1976D2", "#B71C1C"  # blue: not plain's variant
STATES = {"failed": "danger", "stopped": "warning", "done": "success", "working": "info", "idle": ""}
LINES = {"terminal": 2, "python": 4, "papermill": 2, "report": 2}  # what can be copied, with its height in rows
HEADLESS_VARIABLE = "RLBENCH_HEADLESS"


def has_front_end() -> bool:
    """Whether somebody can click: False under papermill and nbconvert, in a plain Python, and where RLBENCH_HEADLESS is set.

    A front end with a person allows a cell to ask for input; programs that execute notebooks forbid it.
    """
    if os.environ.get(HEADLESS_VARIABLE, "0") not in ("", "0"):
        return False
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return bool(getattr(getattr(get_ipython(), "kernel", None), "_allow_stdin", False))


class Panel:
    """Dropdowns for the slots, named Choices, Run, Compare, Stop and Copy.

    The arguments are those of `Bench`; `interactive` None asks `has_front_end`, and False shows a still picture and a
    table and never waits. `choices` are the Choices selected now; `bench` holds all else.
    """

    def __init__(
        self,
        workload: str | None = None,
        env: Any = "CartPole-v1",
        choices: Choices | Mapping[str, str] | str | None = None,
        slots: Sequence[str] | None = None,
        config: Config | Mapping[str, Any] | None = None,
        steps: int = 5_000,
        *,
        device: str = "cpu",
        rounds: int = 20,
        notebook: str | None = None,
        interactive: bool | None = None,
    ) -> None:
        self.bench = Bench(workload, env, choices, slots, config, steps, device, rounds, notebook)
        self.interactive = has_front_end() if interactive is None else interactive
        self.results = Results(self.bench)
        self.changing = threading.RLock()
        self.writer: int | None = None  # the thread that writes into the dropdowns: its changes are not the reader's
        self.heard = True  # the reader has chosen something since the last work: its outcome no longer matters
        self._build()
        self.refresh()

    @property
    def choices(self) -> Choices:
        return self.bench.choices

    def show(self) -> None:
        """Display it; without a front end as a picture and a table."""
        if not self.interactive:
            still(self.bench)
            return
        from IPython.display import display

        display(self.box)
        self.results.show()

    # Building

    def _build(self) -> None:
        self.title = w.HTML(f"<b>{html.escape(self.bench.title)}</b>", layout=w.Layout(margin="0 0 4px 0"))
        self.presets = {name: w.Button(description=name, layout=w.Layout(width="84px")) for name in NAMED}
        for name, button in self.presets.items():
            button.on_click(lambda _, name=name: self._choose(lambda: self.bench.use(name)))
        self.dropdowns = {name: w.Dropdown(layout=w.Layout(width="190px")) for name in self.bench.slots}
        self.labels = {name: self._label(name) for name in self.bench.slots}
        self.hints = {name: w.HTML(layout=w.Layout(flex="1", min_width="0")) for name in self.bench.slots}
        for name, dropdown in self.dropdowns.items():
            dropdown.observe(lambda change, name=name: self._picked(name, change["new"]), "value")
        self.run_button = self._button("Run", "play", "Train once and evaluate", lambda: self.bench.run())
        self.compare_button = self._button(
            "Compare", "balance-scale", "Train in pairs with plain", lambda: self.bench.compare(self._round_done)
        )
        self.stop_button = self._button("Stop", "stop", "End the work and keep what there is", None)
        self.stop_button.on_click(lambda _: self.bench.stop())
        self.copy_button = w.ToggleButton(description="Copy", icon="copy", tooltip="Lines that reproduce this state")
        self.copy_button.layout.width = "104px"
        self.copy_button.observe(lambda change: self.refresh(), "value")
        self.bar = w.FloatProgress(min=0, max=1, layout=w.Layout(width="278px", height="18px", margin="5px 10px 0 2px"))
        self.rate, self.message = w.HTML(), w.HTML()
        self.rate.add_class("rlbench-rate")
        self.message.add_class("rlbench-message")
        self.lines = {name: self._line(rows) for name, rows in LINES.items()}
        self.copy_box = w.VBox([w.HBox([self._label(name), area]) for name, area in self.lines.items()])
        self.box = self._arranged()

    def _button(self, text: str, icon: str, tooltip: str, start: Any) -> w.Button:
        button = w.Button(description=text, icon=icon, tooltip=tooltip, layout=w.Layout(width="104px"))
        if start is not None:
            button.on_click(lambda _: self._begin(start))
        return button

    def _line(self, rows: int) -> w.Textarea:
        return w.Textarea(rows=rows, layout=w.Layout(flex="1", height="auto"))

    def _label(self, text: str) -> w.HTML:
        return w.HTML(_coloured(text, GREY), layout=w.Layout(width="92px"))

    def _arranged(self) -> w.VBox:
        presets = w.HBox([self._label("all slots"), *self.presets.values()])
        slots = [
            w.HBox([self.labels[name], self.dropdowns[name], self.hints[name]], layout=w.Layout(align_items="center"))
            for name in self.bench.slots
        ]
        buttons = w.HBox([self.run_button, self.compare_button, self.stop_button, self.copy_button])
        buttons.layout.margin = "8px 0 2px 0"
        progress = w.HBox([self.bar, self.rate])
        box = w.VBox([self.title, presets, *slots, buttons, progress, self.message, self.copy_box])
        box.layout = w.Layout(border="1px solid #BDBDBD", padding="10px 14px", max_width="920px")
        box.add_class("rlbench-panel")
        return box

    # Reacting

    def _picked(self, slot: str, variant: str) -> None:
        if self.writer != threading.get_ident() and variant != self.bench.shown[slot]:
            self._choose(lambda: self.bench.select(slot, variant))

    def _choose(self, change: Any) -> None:
        with self.changing:
            try:
                change()
                self.heard = True
            finally:
                self.refresh()

    def _begin(self, start: Any) -> None:
        try:
            start()
        except Exception as error:  # shown to the reader instead of a traceback in the log
            self._say(sentence(error), problem=True)
            return
        self.heard = False
        self.refresh()
        threading.Thread(target=self._follow, name="rlbench panel", daemon=True).start()

    def _follow(self) -> None:
        """Show the work's progress until it has ended, then its results."""
        while not self.bench.wait(REFRESH_S):
            self._show_work()
        self.results.update()
        self.refresh()

    def _round_done(self, comparison: Any) -> None:
        """Draw the ladder anew, at most once in two seconds: drawing takes the trainings' time, all sides' alike."""
        if time.perf_counter() - self.results.drawn > 2:
            self.results.update()

    # Showing

    def refresh(self) -> None:
        """Show the bench's state in every widget."""
        with self.changing:
            self.writer = threading.get_ident()
            for name in self.bench.slots:
                self._show_slot(name)
            self.writer = None
            for name, button in self.presets.items():
                button.button_style = "primary" if name == self.bench.name else ""
            self._show_work()
            self._show_lines()

    def _show_work(self) -> None:
        """Show where the work stands, and what can be clicked now."""
        with self.changing:
            status, problem = self.bench.status(), self.bench.problem()
            working = status.state == "working"
            self.run_button.disabled = self.compare_button.disabled = working or problem is not None
            self.run_button.button_style = "success" if not (working or problem) else ""
            self.stop_button.disabled = not working
            self.stop_button.button_style = "danger" if working else ""
            self.bar.value, self.bar.bar_style = status.share if status.job else 0.0, STATES[status.state]
            self.rate.value = html.escape(status.line()) if status.job else _coloured("idle", GREY)
            outcome = "" if self.heard and not working else status.text
            self._say(problem or outcome or self.bench.advice, bool(problem or (outcome and status.state == "failed")))

    def _show_slot(self, name: str) -> None:
        slot, dropdown = self.bench.slot(name), self.dropdowns[name]
        if tuple(dropdown.options) != slot.offered:
            dropdown.options = slot.offered
        dropdown.value = slot.selected
        dropdown.disabled = slot.fixed
        self.labels[name].value = _coloured(name, BLUE if name in self.bench.changes() else GREY)
        remark, detail = slot.remark()
        self.hints[name].value = (
            f'<div title="{html.escape(detail)}" style="color:{GREY};font-size:12px;line-height:16px;padding-left:6px;'
            f'display:-webkit-box;-webkit-line-clamp:2;-webkit-box-orient:vertical;overflow:hidden">{html.escape(remark)}</div>'
        )

    def _say(self, text: str, problem: bool = False) -> None:
        self.message.value = _coloured(text, RED if problem else "inherit")

    def _show_lines(self) -> None:
        self.copy_box.layout.display = "" if self.copy_button.value else "none"
        if self.copy_button.value:
            for area, line in zip(self.lines.values(), self.bench.lines(), strict=True):
                area.value = line


def _coloured(text: str, colour: str) -> str:
    return f'<span style="color:{colour}">{html.escape(text)}</span>'
