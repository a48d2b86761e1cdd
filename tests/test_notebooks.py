"""The stored notebooks keep the rules, and every rule finds a planted violation."""

import copy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from rlbench import notebook_rules as rules

FOLDER = Path(__file__).parents[1] / "notebooks"
FILES = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_notebook_keeps_the_rules(path):
    assert rules.of_file(path) == []


def test_the_notebooks_are_there():
    names = [path.name for path in FILES]
    assert {name[:2] for name in names} >= {f"{number:02}" for number in range(14)}
    assert len({name[:2] for name in names}) == len(names)


def strip_says(*paths):
    """nbstripout's exit code: 0 where there is nothing to strip in any of them."""
    command = [sys.executable, "-m", "nbstripout", "--verify", *map(str, paths)]
    return subprocess.run(command, capture_output=True).returncode


def test_nothing_is_left_to_strip(tmp_path):
    assert strip_says(*FILES) == 0
    dirty = nbformat.read(FILES[0], as_version=4)
    next(cell for cell in dirty.cells if cell.cell_type == "code")["execution_count"] = 3
    nbformat.write(dirty, tmp_path / "00_dirty.ipynb")
    assert strip_says(tmp_path / "00_dirty.ipynb", *FILES) != 0


def slot_notebook():
    return nbformat.read(FOLDER / "03_replay_buffer.ipynb", as_version=nbformat.NO_CONVERT)


def code(notebook, text):
    """The first code cell with `text` in it."""
    return next(cell for cell in notebook.cells if cell.cell_type == "code" and text in cell.source)


def add_code(source):
    def plant(notebook):
        cell = nbformat.v4.new_code_cell(source)
        notebook.cells.insert(-3, cell)

    return plant


def edit(text, old, new, kind="code"):
    def plant(notebook):
        cell = next(cell for cell in notebook.cells if cell.cell_type == kind and text in cell.source)
        assert old in cell.source
        cell["source"] = cell.source.replace(old, new)

    return plant


def set_output(notebook):
    code(notebook, "nb.start")["outputs"] = [nbformat.v4.new_output("stream", text="x")]


def set_widget_state(notebook):
    notebook.metadata["widgets"] = {}


def drop_tag(notebook):
    code(notebook, "quick: bool").metadata["tags"] = []


def same_ids(notebook):
    notebook.cells[1]["id"] = notebook.cells[0]["id"]


def older_format(notebook):
    notebook["nbformat_minor"] = 4


LONG_FUNCTION = "def f():\n    a = 1\n    b = 2\n    c = 3\n    d = 4\n    return a + b + c + d"
PLANTED = [
    (rules.file_rule, same_ids, "ids"),
    (rules.file_rule, older_format, "nbformat"),
    (rules.blank_rule, set_output, "outputs"),
    (rules.blank_rule, set_widget_state, "widgets"),
    (rules.title_rule, edit("# What does", "cost?", "cost.", "markdown"), "question"),
    (rules.title_rule, edit("**Why.**", "**Why.**", "Because:", "markdown"), "Why"),
    (rules.title_rule, edit("**How long.**", "**How long.**", "Long.", "markdown"), "How long"),
    (rules.parameters_rule, drop_tag, "tagged"),
    (rules.parameters_rule, edit("quick: bool", "quick: bool = True", "quick: bool = False"), "quick"),
    (rules.parameters_rule, edit("quick: bool", "seed: int = 1", "seed = 1"), "may stand here"),
    (rules.parameters_rule, edit("quick: bool", "seed: int = 1", "seed: int = 1 + 1"), "literal"),
    (rules.parameters_rule, edit("quick: bool", "seed: int = 1", "seed: float = True"), "a number"),
    (rules.parameters_rule, edit("quick: bool", "seed: int = 1  # the first seed", "seed: int = 1"), "comment"),
    (rules.assigned_rule, add_code("steps = 3"), "steps"),
    (rules.assigned_rule, add_code("steps += 3"), "steps"),
    (rules.assigned_rule, add_code("for steps in range(3):\n    pass"), "steps"),
    (rules.assigned_rule, add_code("import numpy as steps"), "steps"),
    (rules.assigned_rule, add_code("print(steps := 3)"), "steps"),
    (rules.assigned_rule, add_code("with open('x') as steps:\n    pass"), "steps"),
    (rules.assigned_rule, add_code("a, (steps, b) = 1, (2, 3)"), "steps"),
    (rules.assigned_rule, add_code("del steps"), "steps"),
    (rules.assigned_rule, add_code("1 +"), "not valid"),
    (rules.budget_rule, add_code("\n".join(["print()"] * 16)), "16 lines"),
    (rules.budget_rule, add_code(LONG_FUNCTION), "defines"),
    (rules.start_rule, edit("nb.start", "nb.start(quick, threads)", "None"), "nb.start"),
    (rules.ending_rule, edit("## What it costs", "## What it costs", "## Costs", "markdown"), "What it costs"),
    (rules.findings_rule, add_code('nb.finding("It is 3 times as fast.")'), "types a number"),
    (rules.slot_rule, edit("## Same answer?", "## Same answer?", "## Same?", "markdown"), "Same answer?"),
    (rules.slot_rule, edit("## The idea", "With B rows", "word " * 120, "markdown"), "words"),
    (rules.names_rule, add_code("from rlbench import no_such_thing"), "imports rlbench.no_such_thing"),
    (rules.names_rule, add_code("import rlbench.no_such_thing"), "imports rlbench.no_such_thing"),
    (rules.names_rule, add_code("nb.no_such_thing"), "nb.no_such_thing"),
    (rules.names_rule, add_code("nb.table()"), "missing a required argument"),
    (rules.names_rule, add_code("nb.table([], no_such=1)"), "no_such"),
    (rules.names_rule, add_code("nb.table([], **{}, no_such=1)"), "no_such"),
    (rules.slot_rule, edit("nb.source(", "nb.source(", "print("), "nb.source"),
]


@pytest.mark.parametrize(("rule", "plant", "says"), PLANTED, ids=lambda value: getattr(value, "__name__", None))
def test_planted_violation_is_found(rule, plant, says):
    notebook = slot_notebook()
    assert list(rule(notebook, "03_x.ipynb")) == []
    plant(notebook)
    found = list(rule(notebook, "03_x.ipynb"))
    assert found and any(says in text for text in found), found
    assert set(found) <= {text.removeprefix("03_x.ipynb: ") for text in rules.violations(notebook, "03_x.ipynb")}


def test_no_finding_at_all_is_a_violation():
    notebook = slot_notebook()
    for cell in rules.code_cells(notebook):
        cell["source"] = cell.source.replace("nb.finding", "print").replace("nb.verdict", "print")
    assert any("nothing is found" in text for text in rules.findings_rule(notebook, "x"))


def test_file_names_are_numbered():
    assert any("two digits" in text for text in rules.file_rule(slot_notebook(), "replay.ipynb"))


def test_an_executed_copy_may_not_be_large(tmp_path):
    path = tmp_path / "00_x.ipynb"
    path.write_bytes(b"x" * 1_000_000)
    assert rules.executed_size(path) == []
    path.write_bytes(b"x" * 1_000_001)
    assert rules.executed_size(path) != []


def test_inner_names_of_functions_and_comprehensions_do_not_count():
    notebook = copy.deepcopy(slot_notebook())
    add_code("print([steps for steps in range(3)])")(notebook)
    assert list(rules.assigned_rule(notebook, "x")) == []


def test_arguments_spread_with_a_star_may_be_all_that_is_missing():
    notebook = slot_notebook()
    add_code("nb.table(*[[]])\nnb.table(**{'rows': []})\nimport rlbench.phases as p\np.phase('x')")(notebook)
    assert list(rules.names_rule(notebook, "x")) == []
