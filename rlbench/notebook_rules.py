"""The rules that every stored notebook keeps, as functions from a notebook to a list of violations. See `violations`.

A notebook is a question with a why and a duration; one cell of parameters; imports with the machine's card; findings made
from data; what it costs and where to go next. Slot notebooks (metadata `rlbench.slot`) have the sections of `SLOT_SECTIONS`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat

from rlbench import notebook_names
from rlbench.reporting.parameters import TAG, ParameterError, declared

MOST_LINES = 15  # of a code cell
MOST_DEFINED = 5  # lines of a function or class in a notebook
MOST_IDEA_WORDS = 120
LARGEST_EXECUTED = 1_000_000  # bytes
SLOT_SECTIONS = (
    "Before",
    "The idea",
    "After",
    "Same answer?",
    "How much faster?",
    "When does it not help?",
    "Toggle it",
)
LAST_SECTIONS = ("Findings", "What it costs")
NEXT = "## Where to go next"
SAYING = ("finding", "verdict")
TYPED_NUMBER = re.compile(r"\d")


def violations(notebook: Any, name: str) -> list[str]:
    """What is wrong with a notebook of file name `name` (without folder); empty where nothing is."""
    return [f"{name}: {text}" for rule in RULES for text in rule(notebook, name)]


def of_file(path: Path) -> list[str]:
    """Violations of a stored file."""
    return violations(nbformat.read(path, as_version=nbformat.NO_CONVERT), path.name)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def parsed(cell: Any) -> ast.Module | None:
    try:
        return ast.parse(cell.source)
    except SyntaxError:
        return None


def headings(notebook: Any) -> list[str]:
    """The text of second-level headings, in order."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return [line[3:].strip() for line in text.splitlines() if line.startswith("## ")]


def file_rule(notebook: Any, name: str) -> Iterator[str]:
    """Two digits, nbformat 4.5, unique ids."""
    if not re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", name):
        yield "the file name is not two digits, an underscore and lower-case words"
    if (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        yield f"nbformat {notebook.nbformat}.{notebook.nbformat_minor}, not 4.5"
        return
    ids = [cell.get("id") for cell in notebook.cells]
    if len(set(ids)) != len(ids):
        yield "cell ids are not unique"
        return  # nbformat's own check would mend them in passing
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        yield f"not valid: {str(error).splitlines()[0]}"


def blank_rule(notebook: Any, name: str) -> Iterator[str]:
    """No outputs, no execution counts, no state of widgets, no traces of a run."""
    for cell in code_cells(notebook):
        if cell.outputs or cell.execution_count is not None:
            yield f"cell {cell.id} holds outputs or an execution count: strip it with nbstripout"
    for where in (notebook, *notebook.cells):
        for key in {"widgets", "papermill", "execution"} & set(where.metadata):
            yield f"metadata {key!r} is left of a run"


def title_rule(notebook: Any, name: str) -> Iterator[str]:
    """The first cell asks a question and says why and how long."""
    first = notebook.cells[0].source if notebook.cells and notebook.cells[0].cell_type == "markdown" else ""
    if not re.match(r"# [^\n]+\?\s*(\n|$)", first):
        yield "the first cell is not a heading that asks a question"
    for label in ("**Why.**", "**How long.**"):
        if label not in first:
            yield f"the first cell has no {label}"


def parameters_rule(notebook: Any, name: str) -> Iterator[str]:
    """One cell of annotated literals, each with its meaning, `quick: bool = True` among them."""
    tagged = [cell for cell in notebook.cells if TAG in cell.metadata.get("tags", [])]
    if len(tagged) != 1:
        yield f"{len(tagged)} cells are tagged {TAG!r}, not one"
        return
    try:
        known = declared(tagged[0].source)
    except (ParameterError, SyntaxError) as error:
        yield str(error)
        return
    yield from (f"parameter {p.name} has no comment that says what it means" for p in known.values() if not p.help)
    if "quick" not in known or known["quick"].kind != "bool" or known["quick"].default is not True:
        yield "there is no `quick: bool = True`"


def assigned_rule(notebook: Any, name: str) -> Iterator[str]:
    """No cell after the parameters binds one of their names again, which would overwrite what was injected."""
    names: set[str] = set()
    for cell in code_cells(notebook):
        tree = parsed(cell)
        if tree is None:
            yield f"cell {cell.id} is not valid Python"
        elif TAG in cell.metadata.get("tags", []):
            names = {ast.unparse(node.target) for node in tree.body if isinstance(node, ast.AnnAssign)}
        else:
            yield from (f"cell {cell.id} binds the parameter {bound} again" for bound in sorted(names & binds(tree)))


def binds(tree: ast.Module) -> set[str]:
    """Names that a cell binds or deletes in its own scope: assignments, loops, imports, definitions, `with`, walrus."""
    found: set[str] = set()
    inner = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.Lambda) for n in ast.walk(f.args)}
    inner |= {id(n) for f in ast.walk(tree) if isinstance(f, ast.comprehension) for n in ast.walk(f.target)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in inner:
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def budget_rule(notebook: Any, name: str) -> Iterator[str]:
    """Short cells; nothing long is defined in a notebook."""
    for cell in code_cells(notebook):
        lines = len(cell.source.splitlines())
        if lines > MOST_LINES:
            yield f"cell {cell.id} has {lines} lines, more than {MOST_LINES}"
        for node in ast.walk(parsed(cell) or ast.Module([], [])):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MOST_DEFINED:
                    yield f"cell {cell.id} defines something of {length} lines, more than {MOST_DEFINED}"


def start_rule(notebook: Any, name: str) -> Iterator[str]:
    """The cell after the parameters imports and shows the machine's card."""
    cells = code_cells(notebook)
    places = [i for i, cell in enumerate(cells) if TAG in cell.metadata.get("tags", [])]
    after = cells[places[0] + 1].source if places and places[0] + 1 < len(cells) else ""
    if "import" not in after or "nb.start(quick" not in after:
        yield "the cell after the parameters does not import and call nb.start(quick, ...)"


def ending_rule(notebook: Any, name: str) -> Iterator[str]:
    """Findings, what it costs, where to go next: in this order, at the end."""
    found = headings(notebook)
    if found[-3:] != [*LAST_SECTIONS, NEXT[3:]]:
        yield f"the last sections are not {', '.join(LAST_SECTIONS)}, {NEXT[3:]}"


def findings_rule(notebook: Any, name: str) -> Iterator[str]:
    """Findings are said by nb.finding and nb.verdict, and none of their numbers is typed."""
    said = 0
    for cell in code_cells(notebook):
        for node in ast.walk(parsed(cell) or ast.Module([], [])):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAYING:
                said += 1
                text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
                if isinstance(text, str) and TYPED_NUMBER.search(text):
                    yield f"cell {cell.id} types a number into a finding"
    if not said:
        yield "nothing is found: no call of nb.finding or nb.verdict"


def slot_rule(notebook: Any, name: str) -> Iterator[str]:
    """A slot's notebook has all sections in order, shows sources by nb.source, and keeps the idea short."""
    if "slot" not in notebook.metadata.get("rlbench", {}):
        return
    found = [heading.split(":")[0] for heading in headings(notebook)]
    wanted = [heading for heading in found if heading in SLOT_SECTIONS]
    if tuple(wanted) != SLOT_SECTIONS:
        missing = [section for section in SLOT_SECTIONS if section not in wanted]
        yield f"the sections of a slot are not all there in order; missing: {', '.join(missing) or 'none'}"
    source = "\n".join(cell.source for cell in code_cells(notebook))
    for call in ("nb.source(", "nb.source_diff(", "same_answers(", "plots.sweep(", "Panel("):
        if call not in source:
            yield f"there is no call of {call[:-1]}"
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## The idea"):
            prose = [line for line in cell.source.splitlines()[1:] if not line.startswith("    ")]
            words = len(" ".join(prose).split())
            if words >= MOST_IDEA_WORDS:
                yield f"the idea takes {words} words, not under {MOST_IDEA_WORDS}"


def names_rule(notebook: Any, name: str) -> Iterator[str]:
    """What is taken from rlbench is there, and called with arguments that it takes."""
    trees = [(cell.id, tree) for cell in code_cells(notebook) if (tree := parsed(cell)) is not None]
    known: dict[str, Any] = {}
    for place, tree in trees:
        for bound, whole, thing in notebook_names.imported(tree):
            known[bound] = thing
            if thing is notebook_names.MISSING:
                yield f"cell {place} imports {whole}: there is no such name"
    for place, tree in trees:
        yield from (f"cell {place}: {text}" for text in notebook_names.unknown(tree, known))


def executed_size(path: Path) -> list[str]:
    """An executed copy stays under a megabyte."""
    size = path.stat().st_size
    return [f"{path.name}: {size:,} bytes, more than {LARGEST_EXECUTED:,}"] if size > LARGEST_EXECUTED else []


RULES: tuple[Callable[[Any, str], Iterator[str]], ...] = (
    file_rule,
    blank_rule,
    title_rule,
    parameters_rule,
    assigned_rule,
    budget_rule,
    start_rule,
    ending_rule,
    findings_rule,
    slot_rule,
    names_rule,
)
