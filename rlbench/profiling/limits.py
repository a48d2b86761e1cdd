"""What the machine could do, and what other settings would cost, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Peaks:
    """What this machine does at its best, measured now.

    Attributes:
        matmul: operations a second by dtype name ("float32", "bfloat16", …).
        copy: bytes a second read and written in copying a large tensor on the device.
        upload, download: bytes a second between host and device, pinned; None without a device.
        launch_s: seconds of the smallest operator; on CUDA until it is queued.
        python_s: seconds of a Python function call.
        cache: as `copy`, at the size at which it is fastest: no memory of this machine is quicker; None: as `copy`.
        least_s: as `launch_s`, called from C++ as backward does: no operator is quicker; None: as `launch_s`.
    """

    device: str
    matmul: Mapping[str, float]
    copy: float
    launch_s: float
    python_s: float
    upload: float | None = None
    download: float | None = None
    cache: float | None = None
    least_s: float | None = None


@dataclass(frozen=True)
class Light:
    """A phase against the speed of light, a step: `floor_s` is the largest of what its arithmetic, its bytes and the calls of its
    operators must take; `bound` says which ("arithmetic", "memory", "launches"); `share` is floor over measured."""

    phase: str
    flops: float
    bytes: float
    ops: float
    seconds: float
    floor_s: float
    bound: str
    share: float


@dataclass(frozen=True)
class Twins:
    """A step rebuilt from the layers that were seen and timed on this machine, now: what other settings would cost.

    Attributes:
        narrower: by divisor of all hidden widths, the time of forward, backward and optimizer over that of the network as it is.
        acting: by the same divisor, the time of a forward pass to act over that as it is.
        around: by the same divisor, the time of reading a minibatch from arrays over that around the network as it is: what a
            wide network leaves in the caches slows down everything around it.
        batches: by minibatch, seconds of a forward, backward and optimizer step; that of the run is among them.
        hidden, batch: of the run.
        reading_s: seconds of reading a minibatch from arrays by index.
        after_wait: the time of a whole step after the env has waited, over that without a wait; None where it hardly waits.
        fused_s: seconds of the host for a step of Adam in one call.
    """

    narrower: Mapping[int, float]
    acting: Mapping[int, float]
    around: Mapping[int, float]
    batches: Mapping[int, float]
    hidden: tuple[int, ...]
    batch: int
    reading_s: float
    after_wait: float | None = None
    fused_s: float | None = None


@dataclass(frozen=True)
class Overhead:
    """What the profile itself cost: shares of the clocked pass, of the clock by the price of a phase in a loop, of the sampler by
    its processor time."""

    clock: float
    sampler: float
