"""Reading a Chrome trace that torch's profiler wrote. The file is read, not torch's event objects: its fields are the same in all
versions, those of the objects are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlbench.profiling.intervals import length, own_times, union
from rlbench.profiling.records import Copy, Operator

Event = Mapping[str, Any]
DEVICE_CALLS = ("cuda_runtime", "cuda_driver")
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
WAITING = (
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaStreamWaitEvent",
    "cudaMemcpy",
)
LAUNCHING = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch")
DIRECTIONS = {"HtoD": "host to device", "DtoH": "device to host", "DtoD": "device to device"}
RANGES = "user_annotation"
US = 1e-6


def complete(events: Sequence[Event], *categories: str) -> list[Event]:
    """Events with a start and a duration of these categories."""
    return [event for event in events if event.get("ph") == "X" and event.get("cat") in categories and "dur" in event]


def span(events: Sequence[Event]) -> float:
    """Seconds from the first to the last."""
    starts, ends = edges(complete(events, "cpu_op", RANGES, *DEVICE_CALLS, *ON_DEVICE))
    return float((ends.max() - starts.min()) * US) if len(starts) else 0.0


def edges(events: Sequence[Event]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.array([event["ts"] for event in events], dtype=np.float64)
    return starts, starts + np.array([event["dur"] for event in events], dtype=np.float64)


def operators(events: Sequence[Event], limit: int = 40) -> tuple[Operator, ...]:
    """By self time on the host; kernels belong to the operator that launched them, by the trace's correlation numbers."""
    calls: dict[str, int] = defaultdict(int)
    own: dict[str, float] = defaultdict(float)
    threads: dict[Any, list[Event]] = defaultdict(list)
    for event in complete(events, "cpu_op"):
        threads[event.get("pid"), event.get("tid")].append(event)
    for of_thread in threads.values():
        for event, seconds in zip(of_thread, own_times(*edges(of_thread)) * US, strict=True):
            calls[event["name"]] += 1
            own[event["name"]] += float(seconds)
    device = device_seconds(events, threads)
    ordered = sorted(own, key=lambda name: -own[name] - device.get(name, 0.0))
    has_device = bool(complete(events, *ON_DEVICE))
    return tuple(
        Operator(name, calls[name], own[name], device.get(name, 0.0) if has_device else None)
        for name in ordered[:limit]
    )


def device_seconds(events: Sequence[Event], threads: Mapping[Any, Sequence[Event]]) -> dict[str, float]:
    """Seconds of kernels by the innermost operator in which they were launched."""
    launched = {
        event["args"]["correlation"]: event
        for event in complete(events, *DEVICE_CALLS)
        if "correlation" in event.get("args", {})
    }
    kernels = [
        (kernel, launched[kernel["args"]["correlation"]])
        for kernel in complete(events, *ON_DEVICE)
        if kernel.get("args", {}).get("correlation") in launched
    ]
    found: dict[str, float] = defaultdict(float)
    for thread, of_thread in threads.items():
        mine = [pair for pair in kernels if (pair[1].get("pid"), pair[1].get("tid")) == thread]
        for (kernel, _), around in zip(mine, innermost(of_thread, [call for _, call in mine]), strict=True):
            if around is not None:
                found[around["name"]] += kernel["dur"] * US
    return found


def innermost(outer: Sequence[Event], inner: Sequence[Event]) -> list[Event | None]:
    """For each event of `inner` the shortest of `outer` that holds it, None where there is none. Events of one thread: `outer`
    nest or are apart."""
    found: list[Event | None] = [None] * len(inner)
    marked = [(event["ts"], -event["dur"], 0, i) for i, event in enumerate(outer)]
    marked += [(event["ts"], -event["dur"], 1, i) for i, event in enumerate(inner)]
    stack: list[Event] = []
    for start, _, kind, i in sorted(marked):
        while stack and stack[-1]["ts"] + stack[-1]["dur"] < start:
            stack.pop()
        if kind == 0:
            stack.append(outer[i])
            continue
        end = start + inner[i]["dur"]
        found[i] = next((event for event in reversed(stack) if event["ts"] + event["dur"] >= end), None)
    return found


def copies(events: Sequence[Event], seconds: float) -> tuple[Copy, ...]:
    """Host-device copies by direction and kind of memory. The trace names them "Memcpy HtoD (Pinned -> Device)"."""
    found: dict[tuple[str, bool | None], list[Event]] = defaultdict(list)
    for event in complete(events, "gpu_memcpy"):
        direction = next((text for short, text in DIRECTIONS.items() if short in event["name"]), None)
        if direction is not None:
            pinned = True if "Pinned" in event["name"] else False if "Pageable" in event["name"] else None
            found[direction, pinned].append(event)
    return tuple(
        Copy(
            direction,
            len(of_kind),
            sum(int(event.get("args", {}).get("bytes", 0)) for event in of_kind),
            length(union(*edges(of_kind))) * US,
            length(union(*edges(of_kind))) * US / seconds if seconds else 0.0,
            pinned,
        )
        for (direction, pinned), of_kind in found.items()
    )


def device_part(events: Sequence[Event], seconds: float) -> dict[str, Any]:
    """launches, kernel_s, busy, sync_s and sync_by_phase of a trace with a device; nothing of one without."""
    kernels, calls = complete(events, "kernel"), complete(events, *DEVICE_CALLS)
    if not kernels and not calls:
        return {}
    waits = [call for call in calls if call["name"] in WAITING]
    busy = length(union(*edges(kernels))) * US
    return {
        "launches": sum(call["name"] in LAUNCHING for call in calls) or len(kernels),
        "kernel_s": float(np.mean([kernel["dur"] for kernel in kernels])) * US if kernels else 0.0,
        "busy": busy / seconds if seconds else 0.0,
        "sync_s": length(union(*edges(waits))) * US,
        "sync_by_phase": by_range(events, waits),
    }


def by_range(events: Sequence[Event], calls: Sequence[Event]) -> dict[str, float]:
    """Seconds of calls by the innermost range around them, "other" outside all."""
    found: dict[str, float] = defaultdict(float)
    for thread in {call.get("tid") for call in calls}:
        mine = [call for call in calls if call.get("tid") == thread]
        ranges = [event for event in complete(events, RANGES) if event.get("tid") == thread]
        for call, around in zip(mine, innermost(ranges, mine), strict=True):
            found["other" if around is None else around["name"]] += call["dur"] * US
    return dict(found)
