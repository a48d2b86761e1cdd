"""What does one read on the host cost? `.item()`, `float()`, `.cpu()` and the like, of a result in a loop.

Each call works off a number of forward passes of a small network. The baseline reads once, at the end; the others read every
result as it comes. What a read costs is the difference divided by the number of reads: on a GPU that is the wait until the
device has caught up, and the time that the host then cannot run ahead; on the CPU it is the call alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.experiments.ratios import ratio_fields
from rlbench.machine import StealMeter, describe, resolve_device
from rlbench.models import mlp
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.stats import bootstrap_interval
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, time_paired

READS = 20  # results in a call
BATCH = 128

Read = Callable[[Tensor], object]
READERS: dict[str, Read] = {
    ".item()": lambda result: result.item(),
    "float(t)": float,
    "if t > 0": lambda result: bool(result > 0),
    ".cpu()": lambda result: result.cpu(),
    ".cpu().numpy()": lambda result: result.cpu().numpy(),
    ".tolist()": lambda result: result.tolist(),
    'f"{t:.3f}"': lambda result: f"{result:.3f}",
}


def reads(
    widths: Sequence[int] = (0, 64, 512),
    *,
    device: str = "auto",
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """A row for each way to read and each width of the network that computes what is read.

    Width 0 computes nothing: the result is ready. Row: read, width, reads, read_us with read_low and read_high (microseconds
    that one read adds, 95 % interval), aa_read_us (what the same loop timed twice differs by, a read), and a ratio's fields
    for the whole loop against the one that reads once.
    """
    where, machine = resolve_device(device), describe(steal_interval_s=0)
    rows: list[Row] = []
    with Progress(rounds * len(widths), "reads", "rounds", progress) as bar:
        for width in widths:
            meter = StealMeter()
            results = _results(width, where, seed)
            paired = time_paired(
                _loop(results, None),
                {name: _loop(results, read) for name, read in READERS.items()},
                rounds=rounds,
                min_round_s=0.003 if quick else 0.02,
                device=where,
                seed=seed,
                progress=lambda done, total, width=width: bar.advance(1, f"width {width}"),
            )
            for name in READERS:
                fields: dict[str, Any] = {"read": name, "width": width, "reads": READS, "quick": quick}
                fields |= {**read_cost(paired, name), **ratio_fields(paired, name)}
                rows.append(new_row("read", device=where, seeds=[seed], machine=machine, meter=meter, **fields))
    return rows


def read_cost(paired: Paired, name: str) -> dict[str, float]:
    """Microseconds that one read adds to the loop: median over rounds, 95 % interval, and the A/A difference."""
    base = paired.times(BASELINE)
    added = (paired.times(name) - base) / READS * 1e6  # (rounds,)
    again = (paired.times(BASELINE_AGAIN) - base) / READS * 1e6
    low, high = bootstrap_interval(added, np.median)
    aa = max(abs(end) for end in bootstrap_interval(again, np.median))
    return {"read_us": float(np.median(added)), "read_low": low, "read_high": high, "aa_read_us": aa}


def _results(width: int, device: torch.device, seed: int) -> Callable[[], Tensor]:
    """A call that gives a tensor without axes, computed by a network with two hidden layers of `width`."""
    generator = torch.Generator().manual_seed(seed)
    if not width:
        ready = torch.randn((), generator=generator).to(device)
        return lambda: ready
    network = mlp(16, (width, width), 3, generator).to(device)
    batch = torch.randn((BATCH, 16), generator=generator).to(device)  # (B, D)
    return lambda: network(batch).square().mean()


def _loop(results: Callable[[], Tensor], read: Read | None) -> Callable[[], object]:
    """Computes READS results; reads each by `read`, or none but the last."""

    @torch.no_grad()
    def run() -> object:
        for _ in range(READS):
            result = results()
            if read is not None:
                read(result)
        return result.item()

    return run
