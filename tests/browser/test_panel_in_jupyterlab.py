"""The panel in a real browser: choose, run, compare, stop, copy."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest

from rlbench.speedups import SPEEDUPS

NOTEBOOK = "panel.ipynb"
SOURCE = """
from rlbench.widgets import Panel
settings = {"train_frequency": 20, "learning_starts": 200, "batch_size": 32, "eval_episodes": 5}
panel = Panel(env="CartPole-v1", config=settings, steps=2000, rounds=500)
panel.show()
"""
WATCH = """element => {
    window.seen = [];
    const note = () => { if (element.innerText !== window.seen.at(-1)) window.seen.push(element.innerText); };
    new MutationObserver(note).observe(element, {childList: true, subtree: true, characterData: true});
}"""
TRIES, WAIT_MS, WORK_MS = 5, 8_000, 40_000


def write_notebook(path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SOURCE.strip())])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def open_panel(lab: Any, page: Any) -> Any:
    """Open the notebook and run it until the panel is there: JupyterLab drops Run All while the kernel starts."""
    from playwright.sync_api import TimeoutError as NotThere

    lab.start_kernel(NOTEBOOK)
    page.goto(f"{lab.url}/lab/tree/{NOTEBOOK}?token={lab.token}")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
    for _ in range(TRIES):
        dialog = page.locator(".jp-Dialog .jp-mod-accept")
        if dialog.count():
            dialog.first.click()
        page.locator(".jp-Notebook .jp-Cell").first.click()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name=re.compile("Run All Cells")).first.click()
        try:
            panel = page.locator(".rlbench-panel")
            panel.wait_for(timeout=WAIT_MS)
            return panel
        except NotThere:
            continue
    pytest.fail(f"the panel did not show after {TRIES} times Run All")


def picture(page: Any, name: str) -> None:
    """Keep a picture where RLBENCH_TEST_PICTURES names a folder."""
    folder = os.environ.get("RLBENCH_TEST_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")


@pytest.mark.timeout(180)
def test_panel_in_jupyterlab(lab: Any, page: Any) -> None:
    from playwright.sync_api import expect

    write_notebook(lab.folder / NOTEBOOK)
    panel = open_panel(lab, page)
    rate, message = panel.locator(".rlbench-rate"), panel.locator(".rlbench-message")

    def button(name: str) -> Any:
        return panel.get_by_role("button", name=name)

    def dropdown(slot: str) -> Any:
        return panel.locator("select").nth(list(SPEEDUPS).index(slot))

    loop, replay = dropdown("loop"), dropdown("replay")
    expect(loop).to_have_value("python")
    expect(replay).to_have_value("ring_numpy")
    picture(page, "1-plain")
    expect(dropdown("features")).to_be_disabled()  # CartPole has no prices
    replay.select_option("deque")
    expect(message).to_contain_text("replay=deque")
    replay.select_option("ring_torch")
    expect(dropdown("conversion")).to_be_disabled()  # rows are tensors already
    expect(panel).to_contain_text("not used")
    loop.select_option("native")
    expect(message).to_contain_text("fast: Run trains once")  # what was chosen for replay is not used
    replay.select_option("deque")
    expect(loop).to_have_value("python")
    button("fast").click()
    expect(loop).to_have_value("native")
    button("naive").click()  # slow enough to be watched
    expect(loop).to_have_value("python")

    expect(rate).to_have_text("idle")
    rate.evaluate(WATCH)
    button("Run").click()
    expect(message).to_contain_text("mean return", timeout=WORK_MS)
    expect(rate).to_have_text("100 % · done")
    assert len([text for text in page.evaluate("window.seen") if "steps/s" in text]) >= 1
    assert len(page.evaluate("window.seen")) >= 3  # it changed while the work went on
    expect(page.locator(".jp-OutputArea table")).to_have_count(1)
    picture(page, "2-run")

    button("fast").click()
    expect(loop).to_have_value("native")
    button("Compare").click()
    ladder = page.locator(".jp-OutputArea img[src^='data:image/png']")
    expect(ladder).to_have_count(1, timeout=WORK_MS)
    picture(page, "3-compare")
    expect(button("Stop")).to_be_enabled()
    button("Stop").click()
    expect(button("Stop")).to_be_disabled(timeout=5_000)
    expect(message).to_contain_text("plain [")
    expect(page.locator(".jp-OutputArea table")).to_have_count(2)

    button("Copy").click()
    command = panel.locator("textarea").first
    expect(command).to_have_value(re.compile(r"^rlbench train dqn --env CartPole-v1 --choices fast .*--batch-size 32"))
    picture(page, "4-copy")

    page.keyboard.press("Control+s")
    assert stored_types(lab.folder / NOTEBOOK, until="image/png") >= {
        "image/png",
        "text/html",
    }  # the results outlive the kernel


def stored_types(path: Path, until: str) -> set[str]:
    """The types of output in a notebook file, once it has `until`, or after ten seconds."""
    kinds: set[str] = set()
    deadline = time.monotonic() + 10
    while until not in kinds and time.monotonic() < deadline:
        time.sleep(0.2)
        cells = nbformat.read(path, as_version=4).cells
        kinds = {kind for cell in cells for output in cell.outputs for kind in output.get("data", {})}
    return kinds
