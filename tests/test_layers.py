"""A file imports from lower layers, or its own package, only; layers 0 to 4 need torch, numpy and pandas alone."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rlbench"
LAYERS = [
    "config presets actions segments batch random notices uncopied machine probe timing phases stats results tables files "
    "progress",
    "market prices features simulate envs models losses buffers native compile updates evaluations episodes advantages "
    "minibatches",
    "speedups",
    "trainers",
    "measure study workloads experiments gpu_check profiling tuning plot_style notebook_names",
    "profile_findings plots plot_break_even plot_scaling sentences size_findings scaling_findings loop_findings "
    "set_findings plot_sets game_findings plot_strength plot_boards "
    "widgets panel notebook notebook_rules report reporting readme cli __main__",
]
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names.split()}
LIGHT = {"torch", "numpy", "pandas"}
# The one exception: a class that subclasses gymnasium.Env cannot import it later; these files are loaded on first use.
ENV_CLASSES = {
    "envs/trading.py",
    "envs/batch_vector_env.py",
    "envs/batch_trading_env.py",
    "envs/batch_cartpole_env.py",
    "envs/starts.py",
    "envs/workers.py",
    "envs/busy.py",
    "envs/old_style.py",
    "envs/othello_env.py",
}
# A kernel is compiled from its function's source, where Triton's names must be those of the module; loaded on first use, too.
TRITON_KERNELS = "evaluations/triton_kernels.py"

# The slot `loop` is about whole trainers: its functions import them when they are called.
ABOUT_TRAINERS = "speedups/loop.py"


def imports(source: str) -> list[tuple[str, bool]]:
    """(module, whether at import time) of every import; those under `if TYPE_CHECKING:` are for readers alone."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, at_import: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                continue
            if isinstance(child, ast.Import):
                found.extend((alias.name, at_import) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, "imports are absolute"
                if child.module == "rlbench":
                    found.extend((f"rlbench.{alias.name}", at_import) for alias in child.names)
                else:
                    found.append((child.module or "", at_import))
            visit(child, at_import and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    visit(ast.parse(source), True)
    return found


def part_of(path: str) -> str:
    return path.split("/")[0].removesuffix(".py")


def faults(path: str, source: str) -> list[str]:
    """What a file at `path` (relative to the package) imports and must not."""
    own, out = part_of(path), []
    allowed = LIGHT | set(sys.stdlib_module_names) | ({"gymnasium"} if path in ENV_CLASSES else set())
    allowed |= {"triton"} if path == TRITON_KERNELS else set()
    for module, at_import in imports(source):
        top, *rest = module.split(".")
        if top == "rlbench":
            other = rest[0] if rest and rest[0] in LAYER else "__init__"
            higher = other == "__init__" or LAYER[other] > LAYER[own]
            if path == ABOUT_TRAINERS and other == "trainers" and not at_import:
                continue
            same = other != "__init__" and LAYER[other] == LAYER[own] and other != own and LAYER[own] > 1
            if higher or (same and LAYER[own] < 4):
                out.append(f"{path} (layer {LAYER[own]}) imports {module}")
        elif at_import and LAYER[own] < 5 and top not in allowed:
            out.append(f"{path} imports {top} when it is loaded")
    return out


FILES = sorted(str(path.relative_to(PACKAGE).as_posix()) for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", [path for path in FILES if path != "__init__.py"])
def test_imports_go_down(path):
    assert part_of(path) in LAYER, f"{path} belongs to no layer: add it to LAYERS"
    assert faults(path, (PACKAGE / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("timing.py", "import rlbench.trainers.dqn"),
        ("buffers/x.py", "from rlbench.speedups import SPEEDUPS"),
        ("buffers/x.py", "def f():\n    from rlbench import Choices"),
        ("trainers/x.py", "import matplotlib.pyplot as plt"),
        ("study.py", "import papermill"),
        ("envs/x.py", "import gymnasium"),
    ],
)
def test_planted_violations_are_found(path, source):
    assert faults(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("envs/x.py", "def make():\n    import gymnasium"),
        ("buffers/x.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rlbench.trainers import dqn"),
        ("trainers/x.py", "import torch\nfrom rlbench.trainers.schedule import Every"),
    ],
)
def test_what_is_allowed_is_not_reported(path, source):
    assert faults(path, source) == []


@pytest.mark.parametrize("path", FILES)
def test_files_are_small(path):
    assert len((PACKAGE / path).read_text(encoding="utf-8").splitlines()) <= 250, f"{path} is over 250 lines: split it"
