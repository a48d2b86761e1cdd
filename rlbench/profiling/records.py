"""What a profile knows: small frozen records, each a row of one table of the report.

Seconds are wall seconds unless a field says otherwise. "A step" is a call of an environment's `step` (a vector of envs counts
once); where there is no environment it is a step of an optimizer. What was not measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# In the order in which tables show them. A trainer may add its own, such as "advantages", or "update" and "iterations", which
# are many parts in one call.
PHASES = (
    *("set-up", "env", "action", "store", "sample", "transfer", "forward", "backward", "optimizer"),
    *("sync", "python", "other"),
)
TITLES = {"sync": "sync wait", "python": "Python overhead"}


@dataclass(frozen=True)
class PhaseTime:
    """A phase's own time in the clocked pass.

    Attributes:
        share: of the wall time, 0 … 1.
        calls: how often it was entered; 0 for what lies between phases.
        cpu_s: processor seconds of the thread in it; None where that was not measured. Much less than `seconds`: it waited.
        part_of: the fused phase whose parts these are, measured in another run under `loop="python"`; "" in the run itself.
    """

    name: str
    seconds: float
    share: float
    calls: int
    cpu_s: float | None = None
    part_of: str = ""


@dataclass(frozen=True)
class Place:
    """A line of source. `whose` is "yours", "library" (installed packages) or "machinery" (Python, torch, numpy, …)."""

    file: str
    line: int
    function: str
    source: str
    whose: str


@dataclass(frozen=True)
class HotLine:
    """Where the sampler found the thread.

    Attributes:
        own: share of all samples, 0 … 1, in which this was the deepest line that is not machinery.
        total: share in which it was anywhere on the stack.
        phase: in which most of them fell.
    """

    place: Place
    own: float
    total: float
    phase: str


@dataclass(frozen=True)
class Sync:
    """A call that makes the host wait for the device: on a GPU it costs the wait, on the CPU the call alone.

    Attributes:
        call: as one would write it: ".item()", "float(t)", "if t", ".cpu()", ".numpy()", ".tolist()", "nonzero", "t[mask]",
            "print(t)".
        count: in the counted steps.
        wait_s: seconds a call, as measured on the device; None where there is none.
        confirmed: how many of them torch's sync debug mode told of; None without a device.
    """

    place: Place
    call: str
    phase: str
    count: int
    per_step: float
    wait_s: float | None = None
    confirmed: int | None = None


@dataclass(frozen=True)
class OpLine:
    """A line of source that makes torch operators run: how many, by the dispatcher's count."""

    place: Place
    phase: str
    ops: int
    per_step: float


@dataclass(frozen=True)
class Product:
    """A matrix product of a layer: (batch, inputs) times (inputs, outputs).

    Attributes:
        calls: in the counted steps.
        learning: whether gradients were being recorded.
        convolution: its inputs count a patch, its batch every place of every image.
    """

    phase: str
    batch: int
    inputs: int
    outputs: int
    calls: int
    learning: bool
    convolution: bool = False


@dataclass(frozen=True)
class Work:
    """Counted floating-point operations, bytes read and written by operators, and operators, of a phase in the counted steps.

    Attributes:
        dtype: in which most of its matrix products were computed, "bfloat16" under autocast for one.
    """

    phase: str
    flops: int
    bytes: int
    ops: int
    dtype: str = "float32"


@dataclass(frozen=True)
class Counted:
    """The counting pass: short, separate, slow; it counts and never times.

    Attributes:
        seconds: how long it took, `slowdown` how many times longer than the same steps take without it (None if unknown).
        uncompiled: phases in which functions ran uncompiled to be counted: operators and bytes there are more than in the run.
    """

    steps: int
    updates: int
    seconds: float
    slowdown: float | None
    syncs: tuple[Sync, ...]
    op_lines: tuple[OpLine, ...]
    products: tuple[Product, ...]
    work: tuple[Work, ...]
    uncompiled: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operator:
    """`self_s` without the operators it calls, on the host; `device_s` its kernels, None without a device."""

    name: str
    calls: int
    self_s: float
    device_s: float | None = None


@dataclass(frozen=True)
class Copy:
    """`direction` is "host to device", "device to host", "device to device"; `pinned` None where the trace does not tell."""

    direction: str
    count: int
    bytes: int
    seconds: float
    share: float
    pinned: bool | None = None


@dataclass(frozen=True)
class Trace:
    """The trace pass: a few steps under torch's profiler.

    Attributes:
        launches: kernels launched; None without a device, and so are the fields after it.
        kernel_s: mean seconds of a kernel.
        busy: share of the time in which a kernel ran, by the union of their intervals.
        sync_s: seconds the host stood in calls that wait for the device; `sync_by_phase` where.
    """

    steps: int
    seconds: float
    slowdown: float | None
    operators: tuple[Operator, ...]
    copies: tuple[Copy, ...]
    launches: int | None = None
    kernel_s: float | None = None
    busy: float | None = None
    sync_s: float | None = None
    sync_by_phase: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceUse:
    """Sampled by NVML and read from the allocator: all None without a device, or without its library.

    Attributes:
        utilisation: mean share of the sampling periods in which any kernel ran.
        memory: largest share of the device's memory in use, by all processes.
        allocated, reserved: peak bytes of the allocator.
        fragmentation: the share of the reserved bytes that were never allocated.
        retries: allocations that had to free cached blocks first.
    """

    utilisation: float | None = None
    memory: float | None = None
    allocated: int | None = None
    reserved: int | None = None
    fragmentation: float | None = None
    retries: int | None = None
    why_not: str = ""


@dataclass(frozen=True)
class ThreadProbe:
    """The same run with other numbers of torch threads, blocks in turns: seconds a step by number of threads."""

    now: int
    cores: int
    seconds: Mapping[int, float]
