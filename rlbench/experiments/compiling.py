"""What compiling costs, when it pays back, and what makes it happen again."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

import pandas as pd
import torch

from rlbench import compile as compiling
from rlbench.compile import Compiled, CompileError, pays_back_after
from rlbench.config import DQNConfig
from rlbench.machine import StealMeter, describe, resolve_device
from rlbench.models import mlp
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import SPEEDUPS
from rlbench.speedups.optimizer import for_loop
from rlbench.speedups.update import UPDATES, make_inputs, split
from rlbench.updates.compiled import CompiledUpdate, forget_compiled

TIMES = 3  # that something is changed
CHILD_S = 600  # longest that a child may take


def compile_seconds(
    variants: Sequence[str] = ("compiled", "chunked"),
    *,
    batch_size: int = 32,
    device: str = "auto",
    progress: bool | None = None,
) -> list[Row]:
    """Seconds that the first updates of a new process take beyond later ones, two rows a variant.

    Row: variant, batch_size, cache ("empty" or "filled", by the process before), compile_s, not_measured.
    """
    where, slot, machine = resolve_device(device), SPEEDUPS["update"], describe(steal_interval_s=0)
    rows = []
    with Progress(2 * len(variants), "compiling", "processes", progress) as bar:
        for variant in variants:
            reason = slot.requires(variant, None, None, where, None)
            with tempfile.TemporaryDirectory() as folder:
                for cache in ("empty", "filled"):
                    meter = StealMeter()
                    seconds = math.nan if reason else _in_a_process(variant, batch_size, str(where), folder)
                    bar.advance(1, f"{variant}, cache {cache}")
                    fields = {"variant": variant, "batch_size": batch_size, "cache": cache, "compile_s": seconds}
                    fields["not_measured"] = reason
                    rows.append(new_row("compile", device=where, seeds=[0], machine=machine, meter=meter, **fields))
    return rows


def _in_a_process(variant: str, batch_size: int, device: str, folder: str) -> float:
    environment = {**os.environ, compiling.CACHE_VARIABLE: folder}
    module = "rlbench.experiments.compile_once"
    command = [sys.executable, "-m", module, variant, str(batch_size), device, str(torch.get_num_threads())]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=CHILD_S)
    if run.returncode:
        raise CompileError(f"{variant} could not be compiled in a process of its own:\n{run.stderr.strip()[-2000:]}")
    return float(json.loads(run.stdout.splitlines()[-1])["compile_s"])


def break_even(timed: pd.DataFrame, compiled: pd.DataFrame) -> pd.DataFrame:
    """When compiling pays back, a row for each variant and cache.

    Args:
        timed: rows of `measure(["update"])` at one size, whose times are of `UPDATES` updates.
        compiled: rows of `compile_seconds`.

    Returns:
        variant, cache, compile_s, update_us, baseline_us, saved_us (an update, against eager), updates (infinite: never).
    """
    times = timed.set_index("variant")["median_us"] / UPDATES
    eager = float(times["eager"])
    rows = []
    for row in compiled.dropna(subset=["compile_s"]).to_dict("records"):
        own = float(times.get(row["variant"], math.nan))
        if own == own:
            fields = {name: row[name] for name in ("variant", "cache", "compile_s")}
            updates = pays_back_after(row["compile_s"] * 1e6, eager - own)
            rows.append({**fields, "update_us": own, "baseline_us": eager, "saved_us": eager - own, "updates": updates})
    names = ("variant", "cache", "compile_s", "update_us", "baseline_us", "saved_us", "updates")
    return pd.DataFrame(rows, columns=list(names))


def recompilations() -> list[Row]:
    """What makes a compiled update compile again, a row a change: change, changes, recompiles.

    Graphs are traced and guarded as always, but run by PyTorch, so that no code has to be generated for them.
    """
    meter, machine, threads = StealMeter(), describe(steal_interval_s=0), torch.get_num_threads()
    before, compiling.BACKEND = compiling.BACKEND, "eager"
    rows = []
    try:
        for name, change in CHANGES.items():
            forget_compiled()
            count = change()
            fields = {"change": name, "changes": TIMES, "recompiles": count}
            rows.append(new_row("recompile", device="cpu", seeds=[0], machine=machine, meter=meter, **fields))
    finally:
        compiling.BACKEND = before
        torch.set_num_threads(threads)
        forget_compiled()
    return rows


def _updater() -> CompiledUpdate:
    online, target = (mlp(16, (8,), 3, torch.Generator().manual_seed(k)) for k in (0, 1))
    return CompiledUpdate(online, target, DQNConfig(), for_loop)


def _over(act: Callable[[CompiledUpdate, int], object]) -> Callable[[], int]:
    """A call that counts the recompilations of a new updater over a few of `act`, the first of which compiles."""

    def run() -> int:
        update = _updater()
        for k in range(TIMES + 1):
            act(update, k)
        return update.recompiles

    return run


def _batch(rows: int = 8):  # Transitions
    return split(make_inputs(rows, 0, "cpu")[2], rows)[0]


def _load(update: CompiledUpdate, k: int) -> None:
    update.parameters.copy_(torch.full_like(update.parameters, 0.1 * k))
    update(_batch(), 1e-3)


def _rate_as_a_number() -> int:
    function = Compiled(lambda parameters, rate: parameters * rate)
    for k in range(TIMES + 1):
        function(torch.ones(3), 1e-3 / (k + 1))
    return function.recompiles


def _masked(update: CompiledUpdate, k: int) -> None:
    update(_batch()._replace(next_mask=torch.ones(8, 3) if k % 2 else None), 1e-3)


def _threads(update: CompiledUpdate, k: int) -> None:
    torch.set_num_threads(1 + k)
    update(_batch(), 1e-3)


CHANGES: dict[str, Callable[[], int]] = {
    "the learning rate, a tensor": _over(lambda update, k: update(_batch(), 1e-3 / (k + 1))),
    "the learning rate, a Python number": _rate_as_a_number,
    "the weights": _over(_load),
    "the batch size": _over(lambda update, k: update(_batch(8 + k), 1e-3)),
    "a mask of legal actions, with and without": _over(_masked),
    "the number of torch threads": _over(_threads),
}
