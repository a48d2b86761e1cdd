"""torch.compile with its costs in sight: what it needs, what it takes, and how often it happens.

A compiled function is compiled anew for every other shape, stride, type or global setting that it meets. Each time costs
seconds, so compilations are counted, and their seconds. Results are kept in a folder between runs.
"""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import types
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from rlbench.native.build import BuildError, cache_folder, find_compiler

BACKEND = "inductor"  # what compiles where nothing else is asked for
CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
PROBE = "#include <Python.h>\n#include <vector>\nint main() { return 0; }\n"  # what generated code begins with


class CompileError(RuntimeError):
    """A function that could not be compiled here; the message says why and what to do."""


@cache
def why_not(device_type: str) -> str | None:
    """Why torch.compile cannot work on "cpu" or "cuda" here, or None. Looked at once a process."""
    try:
        if device_type == "cuda":
            _look_for_triton()
        else:
            _try_cpp_compiler()
    except (CompileError, BuildError) as error:
        return str(error)
    return None


def _try_cpp_compiler() -> None:
    """On the CPU, generated code is C++ with Python's header."""
    name = os.environ.get("CXX") or {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    if not shutil.which(name):
        raise CompileError(f"torch.compile needs a C++ compiler (looked for $CXX, {name}): install one")
    if sys.platform == "win32":
        return
    command = [name, "-x", "c++", "-fsyntax-only", "-I", sysconfig.get_paths()["include"], "-"]
    try:
        run = subprocess.run(command, input=PROBE, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"torch.compile needs a C++ compiler, and {name} does not run ({error})") from error
    if run.returncode:
        said = (run.stderr.strip().splitlines() or ["no message"])[0]
        raise CompileError(f"torch.compile needs {name} to find Python's header ({said}): install python3-dev")


def _look_for_triton() -> None:
    """On CUDA, generated code is Triton's, whose launchers are C."""
    if importlib.util.find_spec("triton") is None:
        raise CompileError("torch.compile on CUDA needs Triton: pip install triton")
    if torch.cuda.is_available() and torch.cuda.get_device_capability() < (7, 0):
        raise CompileError(f"Triton needs a GPU of compute capability 7.0, not {torch.cuda.get_device_capability()}")
    find_compiler()


def use_cache_folder() -> None:
    """Keep what is compiled in the user's cache folder between runs, unless the variable or torch itself chose one."""
    if CACHE_VARIABLE not in os.environ:
        folder = cache_folder() / "inductor"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # torch then takes one in the folder for temporary files
        os.environ[CACHE_VARIABLE] = str(folder)


class Compiled:
    """A compiled function that counts its compilations.

    It has entries of its own: torch.compile counts them by code object and gives up after eight, so that the ninth trainer of a
    process would fail.

    Args:
        function: of tensors and (named) tuples of them; must be traceable as one graph.
        backend: a torch.compile backend by name; `BACKEND` where left out.

    Attributes:
        compilations: how many calls compiled something.
    """

    def __init__(self, function: Callable[..., Any], backend: str | None = None) -> None:
        self.compilations = 0
        self.spent_s = 0.0  # in calls that compiled
        self.warm_s: float | None = None  # of the first call that did not
        self._asked = 0
        self._backend_name = backend or BACKEND
        use_cache_folder()
        own = types.FunctionType(function.__code__.replace(), function.__globals__, closure=function.__closure__)
        own.__defaults__, own.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        self._function = torch.compile(own, fullgraph=True, dynamic=False, backend=self._backend)

    def __call__(self, *args: Any) -> Any:
        """The function's outcome.

        Raises:
            CompileError: where it cannot be compiled.
        """
        asked, start = self._asked, time.perf_counter()
        try:
            outcome = self._function(*args)
        except (torch._dynamo.exc.TorchDynamoException, torch._dynamo.exc.FailOnRecompileLimitHit) as error:
            raise CompileError(f"torch.compile failed ({_beginning(error)}): use what runs eagerly") from error
        took = time.perf_counter() - start
        if self._asked > asked:  # a trace may be restarted, so that the backend is asked twice in one call
            self.compilations += 1
            self.spent_s += took
        elif self.warm_s is None:
            self.warm_s = took
        return outcome

    def _backend(self, graph: Any, inputs: Any) -> Any:
        self._asked += 1
        with warnings.catch_warnings():
            # Precision is a choice of its own here.
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
            return torch._dynamo.lookup_backend(self._backend_name)(graph, inputs)

    @property
    def recompiles(self) -> int:
        """Compilations after the first."""
        return max(0, self.compilations - 1)

    @property
    def compile_s(self) -> float:
        """Seconds of the calls that compiled, beyond what warm ones take."""
        return max(0.0, self.spent_s - self.compilations * (self.warm_s or 0.0))


def _beginning(error: BaseException) -> str:
    """The type of an error and the first few lines that it says; all of it is chained."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:4])[:300]}"


def pays_back_after(compile_s: float, saved_s: float) -> float:
    """The number of steps after which `compile_s` seconds are won back at `saved_s` a step: whole, or infinite."""
    return math.ceil(compile_s / saved_s) if saved_s > 0 else math.inf
