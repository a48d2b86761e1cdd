"""Evidence by hand: a healthy run, and what a fault changes in it."""

from dataclasses import replace

from rlbench.profiling.evidence import Evidence
from rlbench.profiling.limits import Light, Overhead, Peaks, Twins
from rlbench.profiling.records import Counted, HotLine, PhaseTime, Place, Product, Trace, Work

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
