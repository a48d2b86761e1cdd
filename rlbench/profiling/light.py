"""Speed of light: what the counted work must at least take on this machine, beside what the phases took."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch

from rlbench.profiling.limits import Light, Peaks
from rlbench.profiling.records import Counted, PhaseTime, Work

ALL = "all phases"
NOISE = 1.25  # a floor may exceed the time by this much, by what peaks vary
ARITHMETIC, MEMORY, LAUNCHES = "arithmetic", "memory", "launches"


def speed_of_light(
    phases: Sequence[PhaseTime],
    counted: Counted | None,
    steps: int,
    peaks: Peaks,
    extra_work: Sequence[Work] = (),
) -> tuple[Light, ...]:
    """A row for each phase with counted work and measured time, and one for all phases, which has all time and all work.

    Everything is per step of the clocked pass. A floor is the largest of three times, none of which can be undercut if what was
    counted has to be done:

    - arithmetic: operations over the peak of square products in the type in use. Where torch may round float32 on the way
      (TF32, bfloat16), the peak of the rounded type.
    - memory: bytes over the fastest memory, a cache if there is one: tensors of this size often stay in it, and nothing tells
      how much of them did. A phase whose tensors are larger than the caches is further from memory's bound than it looks.
    - launches: operators times the smallest operator called from C++, Python's part left out. Operators are taken to be called
      one after another.

    What ran uncompiled to be counted starts fewer operators and moves fewer bytes in the run itself: there arithmetic alone is a
    bound. A phase whose floor is clearly above its time has no row: its work was not counted in the run that was on the clock.

    On CUDA the host queues kernels and goes on, so that they may run while another phase is on the clock: there a phase's floor
    is its launches alone, and arithmetic and memory bound all phases together.

    Args:
        phases: of the clocked pass; parts of a fused call, measured in another run, are left out.
        counted: its `work` is of `counted.steps` steps (of its updates, where it has no steps).
        steps: of the clocked pass.
        extra_work: of one step, of native and fused calls that no dispatcher sees. Where a phase has both, the larger one counts,
            so that nothing is counted twice.
    """
    if steps < 1:
        return ()
    spent = {phase.name: phase.seconds / steps for phase in phases if not phase.part_of}
    work = _a_step(counted, extra_work)
    rounded = {product.phase for product in counted.products if product.convolution} if counted else set()
    rates = {name: _rate(peaks, of.dtype, name in rounded) for name, of in work.items()}
    compiled = _compiled(counted)
    on_device = peaks.device.startswith("cuda")
    rows = [
        _row(name, [work[name]], spent[name], peaks, rates, compiled, waits=not on_device)
        for name in spent
        if name in work and spent[name] > 0
    ]
    total = sum(spent.values())
    if not rows or not total:
        return ()
    impossible = {row.phase for row in rows if row.share > NOISE}
    left = [each for name, each in work.items() if name not in impossible]
    rows.append(_row(ALL, left, total, peaks, rates, compiled, waits=True))
    return tuple(_capped(row) for row in rows if row.floor_s and row.share <= NOISE)


def _capped(row: Light) -> Light:
    return replace(row, floor_s=min(row.floor_s, row.seconds), share=min(row.share, 1.0))


def _compiled(counted: Counted | None) -> set[str]:
    """Phases that run compiled: backward does where forward does."""
    names = set(counted.uncompiled) if counted else set()
    return names | ({"backward"} if "forward" in names else set())


class _Work:
    """Work of one step: fractions, unlike what was counted."""

    def __init__(self, work: Work, steps: int) -> None:
        self.phase, self.dtype = work.phase, work.dtype
        self.flops, self.bytes, self.ops = work.flops / steps, work.bytes / steps, work.ops / steps


def _a_step(counted: Counted | None, extra_work: Sequence[Work]) -> dict[str, _Work]:
    """Work a step by phase."""
    found: dict[str, _Work] = {}
    if counted is not None and (counted.steps or counted.updates):
        found = {work.phase: _Work(work, counted.steps or counted.updates) for work in counted.work}
    for work in extra_work:
        extra, seen = _Work(work, 1), found.setdefault(work.phase, _Work(work, 1))
        seen.flops, seen.bytes = max(seen.flops, extra.flops), max(seen.bytes, extra.bytes)
        seen.ops = max(seen.ops, extra.ops)
    return {name: work for name, work in found.items() if work.flops or work.bytes or work.ops}


def _row(
    name: str,
    work: Sequence[_Work],
    seconds: float,
    peaks: Peaks,
    rates: Mapping[str, float],
    compiled: Collection[str],
    waits: bool,
) -> Light:
    """`waits`: what was queued is done when this time is over."""
    flops, moved, ops = (sum(getattr(each, what) for each in work) for what in ("flops", "bytes", "ops"))
    as_counted = [each for each in work if each.phase not in compiled]
    floors = {LAUNCHES: sum(each.ops for each in as_counted) * (peaks.least_s or peaks.launch_s)}
    if waits:
        floors[ARITHMETIC] = sum(each.flops / rates[each.phase] for each in work)
        floors[MEMORY] = sum(each.bytes for each in as_counted) / (peaks.cache or peaks.copy)
    bound = max(floors, key=lambda which: floors[which])
    return Light(name, flops, moved, ops, seconds, floors[bound], bound, floors[bound] / seconds)


def _rate(peaks: Peaks, dtype: str, convolution: bool) -> float:
    """Operations a second that bound products of this type. A type that was not measured: the fastest of all."""
    if dtype not in peaks.matmul:
        return max(peaks.matmul.values())
    rate = peaks.matmul[dtype]
    if dtype == "float32" and _rounds(peaks.device, convolution):
        rate = max(rate, peaks.matmul.get("tf32", peaks.matmul.get("bfloat16", 0.0)))
    return rate


def _rounds(device: str, convolution: bool) -> bool:
    """Whether torch may round float32 in products now, in those of convolutions too if there are any."""
    cuda = device.startswith("cuda")
    kinds = [torch.backends.cuda.matmul if cuda else torch.backends.mkldnn.matmul]
    if convolution:
        kinds.append(torch.backends.cudnn.conv if cuda else torch.backends.mkldnn.conv)
    return any(kind.fp32_precision in ("tf32", "bf16") for kind in kinds)
