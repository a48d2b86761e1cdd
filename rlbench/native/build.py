"""Build a C file of this folder once a machine and source, and load it.

A C compiler and ctypes are all it takes: a build is a second or two, where an extension against PyTorch's headers is half a
minute and a just-in-time compiler a dependency of hundreds of megabytes. Libraries are kept in a cache folder under a name that
depends on source, flags, compiler and processor, so that a changed source or another machine never meets a stale one.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-std=gnu11", "-shared", "-fPIC")
# No fused multiply-adds: every operation rounds as it does in Python. Traps of the processor, which nobody has set, would keep
# the compiler from making vector code of what it may not do for every element.
EXACT = ("-ffp-contract=off", "-fno-trapping-math")
CACHE_VARIABLE = "RLBENCH_CACHE"


class BuildError(RuntimeError):
    """A kernel that could not be built here; the message says why and what to do."""


_builds_s: list[float] = []  # seconds of each build in this process that nobody has accounted for


def take_build_seconds() -> float:
    """Seconds spent building since the last call, so that each is counted once; what lay in the cache cost none."""
    spent = sum(_builds_s, 0.0)
    _builds_s.clear()
    return spent


@cache
def load(name: str, exact: bool = False) -> ctypes.CDLL:
    """The library of `<name>.c`; `exact` where it must round as Python does.

    Raises:
        BuildError: without a C compiler, where it fails, and where its result cannot be kept or loaded.
    """
    source = Path(__file__).with_name(f"{name}.c")
    compiler = find_compiler()
    try:
        flags = FLAGS + EXACT if exact else FLAGS
        path = cache_folder() / f"{name}-{_digest(source, compiler, flags)}.so"
        if not path.is_file():
            start = time.perf_counter()
            _compile(compiler, source, path, flags)
            _builds_s.append(time.perf_counter() - start)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.TimeoutExpired) as error:
        hint = f"set {CACHE_VARIABLE} to a folder that can be written"
        raise BuildError(f"{name} could not be built and loaded ({error}): {hint}") from error


def check_layout(library: ctypes.CDLL, name: str, kind: type[ctypes.Structure]) -> None:
    """Refuse to hand a C function a struct of another size than it was built for, which would corrupt memory."""
    built, here = ctypes.c_int64.in_dll(library, f"{name}_bytes").value, ctypes.sizeof(kind)
    if built != here:
        raise BuildError(f"struct {name} has {built} bytes in C and {here} in {kind.__name__}: bring the two into step")


def find_compiler() -> str:
    """The C compiler of the variable CC, or the first of cc, gcc and clang on the path."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    raise BuildError("there is no C compiler (looked for $CC, cc, gcc, clang): install gcc or clang")


def cache_folder() -> Path:
    """Where libraries are kept: $RLBENCH_CACHE, else the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlbench"


def _digest(source: Path, compiler: str, flags: tuple[str, ...]) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, timeout=20).stdout
    included = [path.read_bytes() for path in sorted(source.parent.glob("*.[ch]"))]  # any of them may be
    parts = [source.name.encode(), *included, " ".join(flags).encode(), version, _processor().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def _processor() -> str:
    """What -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())


def _compile(compiler: str, source: Path, path: Path, flags: tuple[str, ...]) -> None:
    """Build beside the target and rename: other processes see the whole library or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        out = Path(folder) / path.name
        run = subprocess.run(
            [compiler, *flags, "-o", str(out), str(source), "-lm"], capture_output=True, text=True, timeout=120
        )
        if run.returncode:
            raise BuildError(f"{compiler} could not build {source.name} ({run.stderr.strip()[-300:]})")
        os.replace(out, path)
