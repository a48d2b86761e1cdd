"""Every host synchronisation on a hot path says why on its line: `# sync: why`."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rlbench"
HOT = ["losses.py", "models", "buffers", "speedups", "updates", "trainers", "random.py"]
# Methods that copy a tensor's values to the host, or wait for the device.
METHODS = {"item", "cpu", "numpy", "tolist", "nonzero", "synchronize"}
# Calls of such methods on what is never a tensor there: NumPy arrays named so.
ARRAYS = {"index", "actions", "explores", "legal", "which"}
# Functions of a slot that only set up or judge a measurement.
SET_UP = {"make_inputs", "check"}


def unexplained(source: str) -> list[int]:
    """Lines that synchronise without saying why."""
    lines, out, tree = source.splitlines(), [], ast.parse(source)
    tree.body = [node for node in tree.body if getattr(node, "name", None) not in SET_UP]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
            continue
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id in ARRAYS:
            continue
        text = "\n".join(lines[node.lineno - 1 : (node.end_lineno or node.lineno)])
        if "# sync:" not in text:
            out.append(node.lineno)
    return sorted(set(out))


FILES = sorted(
    file for name in HOT for file in ([PACKAGE / name] if name.endswith(".py") else (PACKAGE / name).glob("*.py"))
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_synchronisations_are_explained(file):
    assert unexplained(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line", ["x = loss.item()", "a = q.argmax(1).cpu()", "t.tolist()", "torch.cuda.synchronize()", "i = mask.nonzero()"]
)
def test_planted_violations_are_found(line):
    assert unexplained(f"y = 1\n{line}\n") == [2]
    assert unexplained(f"{line}  # sync: the caller asked\n") == []
