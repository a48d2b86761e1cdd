"""What does a copy between host and device cost, over its size?

From ordinary (pageable) memory, from memory that was pinned beforehand, with and without waiting, and from memory that is
pinned for this one copy. The copies of a call follow each other on one stream, as those of a training do. On a machine
without CUDA only the host's own copy is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from rlbench.experiments.ratios import no_ratio, ratio_fields
from rlbench.machine import StealMeter, describe, resolve_device
from rlbench.measure import NO_CUDA
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.timing import BASELINE, BASELINE_AGAIN, Paired, time_paired

PAGEABLE = "to the device, pageable"
HOST = "host to host"
COPIES = (
    HOST,
    PAGEABLE,
    "to the device, pinned before",
    "to the device, pinned before, non-blocking",
    "to the device, pinned in the loop",
    "to the device, pinned in the loop, non-blocking",
    "to the host, pageable",
    "to the host, into pinned memory",
)


def copies(
    sizes: Sequence[int] = (1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 24),
    *,
    device: str = "auto",
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """A row for each kind of copy and each size in bytes (rounded down to whole float32 numbers).

    Row: copy, bytes, gb_per_s (1e9 bytes a second, counted once), and a ratio's fields against the pageable copy to the
    device; on a machine without CUDA against nothing, since only the copy from host to host can be timed there.
    """
    where, machine = resolve_device(device), describe(steal_interval_s=0)
    rows: list[Row] = []
    with Progress(rounds * len(sizes), "copies", "rounds", progress) as bar:
        for size in sizes:
            if size < 4:
                raise ValueError(f"sizes: {size} bytes; accepted are whole numbers from 4, a float32 number.")
            meter = StealMeter()
            calls = _calls(size // 4, where, seed)
            baseline = PAGEABLE if PAGEABLE in calls else HOST
            paired = time_paired(
                calls[baseline],
                {name: call for name, call in calls.items() if name != baseline},
                rounds=rounds,
                min_round_s=0.003 if quick else 0.02,
                device=where,
                seed=seed,
                progress=lambda done, total, size=size: bar.advance(1, f"{size:,} bytes"),
            )
            for name in COPIES:
                fields: dict[str, Any] = {"copy": name, "against": baseline, "bytes": size // 4 * 4, "quick": quick}
                fields |= _numbers(name, baseline, size // 4 * 4, paired)
                rows.append(new_row("copy", device=where, seeds=[seed], machine=machine, meter=meter, **fields))
    return rows


def _numbers(name: str, baseline: str, size: int, paired: Paired) -> dict[str, object]:
    if name == baseline:
        numbers = {**ratio_fields(paired, BASELINE_AGAIN), "median_us": paired.median_s(BASELINE) * 1e6}
        numbers |= {"verdict": "baseline", "round_times": paired.times(BASELINE).tolist()}
    elif name in paired.names:
        numbers = ratio_fields(paired, name)
    else:
        return {**no_ratio(paired, NO_CUDA), "gb_per_s": float("nan")}
    return {**numbers, "gb_per_s": size / paired.median_s(BASELINE if name == baseline else name) / 1e9}


def _calls(numbers: int, device: torch.device, seed: int) -> dict[str, Callable[[], object]]:
    """The copies that this device can make, each of the same float32 numbers."""
    generator = torch.Generator().manual_seed(seed)
    host = torch.randn(numbers, generator=generator)
    kept = torch.empty_like(host)
    calls: dict[str, Callable[[], object]] = {HOST: lambda: kept.copy_(host)}
    return calls if device.type != "cuda" else calls | _device_calls(host, device)


def _device_calls(host: Tensor, device: torch.device) -> dict[str, Callable[[], object]]:
    pinned, there = host.pin_memory(), host.to(device)
    landing = torch.empty_like(host).pin_memory()
    return dict(
        zip(
            COPIES[1:],
            (
                lambda: host.to(device),
                lambda: pinned.to(device),
                lambda: pinned.to(device, non_blocking=True),
                lambda: host.pin_memory().to(device),
                lambda: host.pin_memory().to(device, non_blocking=True),
                lambda: there.cpu(),
                lambda: landing.copy_(there),
            ),
            strict=True,
        )
    )
