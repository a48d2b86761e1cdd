"""Evidence by hand: a healthy run, and what a fault changes in it."""

from dataclasses import replace

from rlbench.profiling.evidence import Evidence
from rlbench.profiling.limits import Light, Overhead, Peaks, Twins
from rlbench.profiling.records import (
    Copy,
    Counted,
    DeviceUse,
    HotLine,
    Operator,
    OpLine,
    PhaseTime,
    Place,
    Product,
    Sync,
    ThreadProbe,
    Trace,
    Work,
)

HEALTHY = {
    "env": 0.10, "action": 0.10, "store": 0.05, "sample": 0.05, "forward": 0.30, "backward": 0.25, "optimizer": 0.10,
    "python": 0.05,
}  # fmt: skip
PEAKS = Peaks("cpu", {"float32": 1e11, "bfloat16": 9e10}, 2e10, 1e-6, 1e-7)
TWINS = Twins(
    narrower={1: 1.0, 2: 0.8, 4: 0.7, 10: 0.6},
    acting={1: 1.0, 2: 1.0, 4: 1.0, 10: 1.0},
    around={1: 1.0, 2: 1.0, 4: 1.0, 10: 1.0},
    batches={1: 0.3e-3, 32: 0.35e-3, 64: 0.4e-3, 128: 0.5e-3},
    hidden=(64, 64),
    batch=64,
    reading_s=20e-6,
)
PRODUCTS = (
    Product("action", 1, 4, 64, 100, False),
    Product("forward", 64, 4, 64, 100, True),
    Product("forward", 64, 64, 64, 100, True),
)


def place(source="x = 1", line=1, whose="yours", file="train.py", function="main"):
    return Place(file, line, function, source, whose)


BETWEEN = ("store", "sample", "python", "other")


def phases(shares, seconds=10.0, calls=1000, cpu=None):
    return tuple(
        PhaseTime(name, share * seconds, share, 0 if name in BETWEEN else calls, cpu if name == "env" else None)
        for name, share in {**shares, "other": 0.0}.items()
    )


def counted(syncs=(), op_lines=(), products=PRODUCTS, steps=100, updates=100):
    work = (Work("forward", 10**6, 10**5, 700), Work("optimizer", 0, 10**4, 100))
    return Counted(steps, updates, 0.5, 5.0, tuple(syncs), tuple(op_lines), tuple(products), work)


def evidence(shares=None, **changes):
    """A script of 1,000 steps and updates in 10 s, nothing wrong with it."""
    made = Evidence(
        what="script",
        name="train.py",
        device="cpu",
        seconds=10.0,
        steps=1000,
        updates=1000,
        episodes=5,
        phases=phases(shares or HEALTHY, cpu=(shares or HEALTHY)["env"] * 10.0),
        counted=counted(),
        trace=Trace(50, 0.6, 1.2, (), ()),
        peaks=PEAKS,
        light=(Light("forward", 1e4, 1e3, 7.0, 3e-3, 1e-3, "arithmetic", 0.33),),
        twins=TWINS,
        overhead=Overhead(0.005, 0.01),
    )
    return replace(made, **changes)


def hot(source, own, total, phase, **where):
    return HotLine(place(source, **where), own, total, phase)


EVIL = '<script>alert("x")</script> & `code`'


def rich(text=EVIL):
    """Every table has rows: a fused call with its parts, syncs, operators, threads. `text` stands for all that a reader wrote."""
    own = (
        *phases({"iterations": 0.9, "python": 0.1}),
        *(PhaseTime(n, 2 * s, s, 9, None, "iterations") for n, s in SHARED),
    )
    long = place("x" * 300, 2, file="a/" * 80 + "b.py")
    syncs = (Sync(place(text), ".item()", "python", 100, 1.0), Sync(long, "if t", "forward", 3, 0.03))
    op_lines = (OpLine(place(text, 3), "forward", 700, 7.0), OpLine(long, "sample", 20, 0.2))
    return evidence(
        name=text,
        phases=own,
        counted=counted(syncs, op_lines),
        lines=(hot(text, 0.5, 0.6, "env"), HotLine(long, 0.1, 0.1, "sample")),
        threads=ThreadProbe(8, 2, {1: 0.004, 8: 0.010}),
        trace=Trace(50, 0.6, 1.2, (Operator(text, 7, 0.01), Operator("aten::mm", 100, 0.2)), ()),
        notes=(text,),
        machine={"cpu": "Some CPU", "torch": "2.13.0", "torch_threads": 8},
    )


SHARED = (("env", 0.25), ("update", 0.5), ("python", 0.25))


def empty():
    """A block in which nothing was seen."""
    return Evidence("block", "block", "cpu", 0.0, 0, 0, 0, (), device_use=DeviceUse(why_not="the run is on the CPU"))


def on_cuda():
    """A run on a GPU that copies back and forth and starts many short kernels."""
    copies = (
        Copy("host to device", 100, 3_200_000, 0.03, 0.05, False),
        Copy("device to host", 100, 400, 0.002, 0.0, True),
        Copy("device to device", 7, 700, 0.0001, 0.0),
    )
    return evidence(
        HEALTHY | {"env": 0.05, "sync": 0.05},
        name="dqn.py",
        device="cuda:0",
        counted=counted((Sync(place("a = int(q.argmax())", 41), "int(t)", "action", 100, 1.0, 120e-6),)),
        trace=Trace(
            50, 0.6, 1.2, (Operator("aten::addmm", 300, 0.004, 0.001),), copies,
            launches=4000, kernel_s=2.5e-6, busy=0.31, sync_s=0.006, sync_by_phase={"action": 0.006},
        ),
        device_use=DeviceUse(0.4, 0.0625, 10**8, 2 * 10**8, 0.5, 0),
        peaks=Peaks("cuda:0", {"float32": 5e13, "tf32": 4e14}, 4e12, 4e-6, 1e-8, 5e10, 5e10),
    )  # fmt: skip
