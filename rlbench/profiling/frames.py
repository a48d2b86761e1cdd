"""Whose code a stack frame is, and what its function is named for."""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
import sysconfig
from pathlib import Path
from types import FrameType

from rlbench.profiling.records import Place

YOURS, LIBRARY, MACHINERY = "yours", "library", "machinery"
# What a reader does not change: below these the line that calls them is the one to look at.
MACHINERY_PACKAGES = (
    "torch",
    "torchgen",
    "numpy",
    "pandas",
    "gymnasium",
    "gym",
    "tqdm",
    "IPython",
    "ipykernel",
    "traitlets",
    "tornado",
)
PACKAGES = ("site-packages", "dist-packages")
PACKAGE = str(Path(__file__).parents[1]) + os.sep
# The profiler itself and what starts it, which are as if not there.
OWN = tuple(PACKAGE + name for name in (f"profiling{os.sep}", f"cli{os.sep}", "__main__.py", "phases.py"))
LAUNCHER = f"{os.sep}rlbench"  # the file that an installation puts beside Python
_real: dict[Place, str] = {}  # the path behind a place's file
WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
NAMED_FOR = {
    "store": {
        "add",
        "push",
        "store",
        "append",
        "remember",
        "insert",
        "put",
        "cache",
        "observe",
        "memorize",
        "memorise",
    },
    "sample": {"sample", "minibatch", "batch", "draw", "replay", "experiences"},
    "action": {"act", "action", "choose", "predict", "policy", "select", "explore"},
}


@functools.cache
def whose(file: str) -> str:
    """ "yours", "library" or "machinery", by where the file lies. rlbench counts as a library."""
    if file.startswith(PACKAGE):
        return LIBRARY
    if file.startswith("<"):
        return YOURS if file.startswith(("<ipython-input", "<stdin>")) else MACHINERY  # "<frozen runpy>", "<string>"
    parts = Path(file).parts
    for packages in PACKAGES:
        if packages in parts:
            inside = parts[parts.index(packages) + 1 :]
            top = inside[0].removesuffix(".py") if inside else ""
            return MACHINERY if top in MACHINERY_PACKAGES else LIBRARY
    return MACHINERY if file.startswith(_standard_library()) else YOURS


@functools.cache
def _standard_library() -> tuple[str, ...]:
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), str(Path(os.__file__).parent)}
    return tuple(folder + os.sep for folder in folders if folder)


@functools.cache
def place_of(file: str, line: int, function: str) -> Place:
    """A line with its source, if that can be read; the file relative to the working folder where it lies below it."""
    place = Place(shown_file(file), line, function, linecache.getline(file, line).strip(), whose(file))
    _real[place] = file
    return place


def real_path(place: Place) -> str:
    """The path behind a place's file. Two files may be shown alike, such as cells whose number is not known."""
    return _real.get(place, place.file)


def forget_sources() -> None:
    """Read anew what has changed on disk since: in a notebook a reader profiles, edits a module, and profiles again."""
    place_of.cache_clear()
    linecache.checkcache()


def shown_file(file: str) -> str:
    """A path as a reader would write it: below the working folder, or within a package; a notebook's cell by its number."""
    if "ipykernel_" in file:
        return _cell(file)
    if file.startswith(PACKAGE):
        return str(Path(file).relative_to(Path(PACKAGE).parent))
    for packages in PACKAGES:
        if f"{os.sep}{packages}{os.sep}" in file:
            return file.rsplit(f"{os.sep}{packages}{os.sep}", 1)[1]
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def _cell(file: str) -> str:
    """The kernel names a cell's code by a hash; its number is in IPython's history of it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"cell {numbers[file]}" if file in numbers else "a notebook's cell"


def is_own(file: str) -> bool:
    """Whether it is the profiler's."""
    return file.startswith(OWN) or file.endswith(LAUNCHER)


def nearest(frame: FrameType | None) -> FrameType | None:
    """The deepest frame that is neither machinery nor the profiler's, from this one outwards."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_own(file) and whose(file) != MACHINERY:
            return frame
        frame = frame.f_back
    return None


@functools.cache
def function_phase(function: str) -> str | None:
    """What a function of that name is for: "store", "sample", "action", or None. By words: `sample_batch`, not `resample`."""
    words = [word.lower() for word in WORDS.findall(function)]
    for word in words:  # the first word that says something: `add_batch` stores, `select_action` acts
        for phase, named in NAMED_FOR.items():
            if word in named:
                return phase
    return None
