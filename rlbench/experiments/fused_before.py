"""Whether the fused loop has been compiled before on this machine, so that it need not cost a quick run a minute.

PyTorch keeps what it compiles in a folder, but cannot be asked whether something is there. So a mark is left in that folder.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from rlbench import compile as compiling
from rlbench.experiments.environments import without
from rlbench.files import write_text
from rlbench.results import Row
from rlbench.speedups import SPEEDUPS, Speedup
from rlbench.timing import synchronize

PACKAGE = Path(compiling.__file__).parent
TRACED = ("trainers", "updates", "envs", "buffers", "models", "speedups")  # folders whose code it is made of


def mark(size: int, device: str | torch.device) -> Path:
    """A file that is there once `loop="fused"` was compiled for `size` environments by this code and this PyTorch."""
    compiling.use_cache_folder()
    folder = os.environ.get(compiling.CACHE_VARIABLE)
    made_of = [PACKAGE / "random.py", *(path for name in TRACED for path in sorted((PACKAGE / name).glob("*.py")))]
    digest = hashlib.sha256(
        f"{torch.__version__} {torch.device(device).type} {size} {torch.get_num_threads()}".encode()
    )
    for path in made_of:
        digest.update(path.read_bytes())
    base = Path(folder) if folder else compiling.cache_folder()
    return base / f"fused-{digest.hexdigest()[:16]}"


def slot_for(sizes: Sequence[int], device: str | torch.device, quick: bool) -> tuple[Speedup, str]:
    """The slot `loop`, and a line that says so where a quick run leaves out what it would have to compile."""
    slot = SPEEDUPS["loop"]
    if not quick or slot.requires("fused", None, None, torch.device(device), None):
        return slot, ""
    if all(mark(size, device).is_file() for size in sizes):
        return slot, ""
    text = (
        "loop=fused is left out of this quick run, since it takes a minute or more to compile: a full run measures it, and "
        "once one has, quick runs on this machine do too."
    )
    return without(slot, "fused"), text


def compile_seconds(slot: Speedup, sizes: Sequence[int], device: str | torch.device, seed: int = 0) -> list[Row]:
    """What the first call of the fused loop takes beyond the second one, for each size: size, compile_s. None without it.

    To be called before anything else compiles the same.
    """
    rows = []
    for size in sizes if "fused" in slot.variants else ():
        if slot.requires("fused", None, None, torch.device(device), None):
            continue
        times, start = [], time.perf_counter()
        call = slot.bind(slot.variants["fused"], slot.make_inputs(size, seed, str(device)))
        for _ in range(2):
            call()
            synchronize(device)
            times.append(time.perf_counter() - start)
            start = time.perf_counter()
        rows.append({"size": size, "compile_s": times[0] - times[1]})
    return rows


def leave_marks(rows: Sequence[Row]) -> None:
    """After measuring: note for which sizes the fused loop has been compiled."""
    for row in rows:
        if row["variant"] == "fused" and row["rounds"]:
            write_text(mark(row["size"], row["device"]), "")
