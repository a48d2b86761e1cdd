"""The panel's widgets without a browser, and what a headless run of a notebook leaves."""

import time
from types import SimpleNamespace

import nbformat
import pytest

from rlbench.speedups import Choices
from rlbench.widgets import HEADLESS_VARIABLE, Panel, has_front_end

SMALL = {"learning_starts": 50, "train_frequency": 10, "batch_size": 8, "hidden": (8,), "eval_episodes": 2}
GUARD_S = 30


def until(condition) -> None:
    deadline = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def panel():
    panel = Panel(config=SMALL, steps=300, interactive=True)
    yield panel
    panel.bench.stop()
    assert panel.bench.wait(GUARD_S)
    until(lambda: panel.stop_button.disabled)


def test_dropdowns_edit_the_choices(panel):
    assert panel.choices == Choices.plain()
    panel.dropdowns["replay"].value = "deque"
    assert panel.choices.replay == "deque"
    assert panel.presets["plain"].button_style == "" and "replay=deque" in panel.message.value
    panel.presets["fast"].click()
    assert panel.choices.in_use(panel.bench.config) == Choices.fast().in_use(panel.bench.config)
    assert panel.dropdowns["update"].value == "native"
    assert panel.presets["fast"].button_style == "primary"
    assert panel.dropdowns["features"].disabled  # CartPole has no prices, whatever the loop
    assert not panel.dropdowns["replay"].disabled and "not used" in panel.hints["replay"].value
    panel.dropdowns["replay"].value = "ring_torch"
    assert panel.dropdowns["loop"].value == "python"
    assert panel.dropdowns["conversion"].disabled and "not used" in panel.hints["conversion"].value


def test_a_problem_is_a_sentence_and_disables_run():
    panel = Panel(choices={"transfer": "pinned"}, interactive=True)
    assert panel.dropdowns["transfer"].options == ("pageable", "pinned")
    assert panel.run_button.disabled and panel.compare_button.disabled
    assert "cannot be used" in panel.message.value
    panel.dropdowns["transfer"].value = "pageable"
    assert not panel.run_button.disabled
    assert panel.dropdowns["transfer"].options == ("pageable",)
    assert panel.choices.to_dict() == Choices.plain().to_dict()


def test_run_shows_its_outcome_until_something_else_is_chosen(panel):
    panel.run_button.click()
    assert panel.run_button.disabled and not panel.stop_button.disabled
    until(lambda: panel.bar.bar_style == "success")
    assert panel.bar.value == 1.0 and panel.rate.value == "100 % · done"
    assert "mean return" in panel.message.value
    panel.presets["naive"].click()
    assert "naive: Run trains once" in panel.message.value


def test_stop_ends_the_work(panel):
    panel = Panel(config=SMALL, steps=100_000_000, interactive=True)
    panel.compare_button.click()
    until(lambda: panel.bench.status().done > 0)
    panel.stop_button.click()
    assert panel.bench.wait(GUARD_S)
    until(lambda: panel.stop_button.disabled)
    assert panel.bar.bar_style == "warning" and "nothing to show" in panel.message.value


def test_an_error_is_shown_escaped():
    panel = Panel(env=lambda: 1 / 0, config=SMALL, interactive=True)
    panel.run_button.click()
    until(lambda: panel.bar.bar_style == "danger")
    assert "ZeroDivisionError: division by zero" in panel.message.value
    panel._say("<script>", problem=True)
    assert "&lt;script&gt;" in panel.message.value


def test_copy_shows_lines_of_the_present_state(panel):
    assert panel.copy_box.layout.display == "none"
    panel.copy_button.value = True
    assert panel.copy_box.layout.display == ""
    panel.presets["fast"].click()
    assert "--choices fast" in panel.lines["terminal"].value
    panel.presets["plain"].click()
    panel.dropdowns["optimizer"].value = "foreach"
    panel.dropdowns["replay"].value = "ring_torch"
    assert "--set replay=ring_torch --set optimizer=foreach" in panel.lines["terminal"].value


def test_front_end_or_none(monkeypatch):
    monkeypatch.delenv(HEADLESS_VARIABLE, raising=False)
    assert not has_front_end()  # a plain Python
    kernel = SimpleNamespace(_allow_stdin=True)
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=kernel))
    assert has_front_end()
    kernel._allow_stdin = False
    assert not has_front_end()
    kernel._allow_stdin = True
    monkeypatch.setenv(HEADLESS_VARIABLE, "1")
    assert not has_front_end()
    monkeypatch.setenv(HEADLESS_VARIABLE, "0")
    assert has_front_end()


def test_an_executed_notebook_holds_a_picture_and_a_table(tmp_path, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.delenv(HEADLESS_VARIABLE, raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    source = "from rlbench.widgets import Panel\nPanel(choices='fast').show()"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    kinds = [set(output["data"]) for output in notebook.cells[0].outputs]
    assert kinds == [{"image/png", "text/plain"}, {"text/html", "text/plain"}]
    assert "native" in notebook.cells[0].outputs[1]["data"]["text/html"]
