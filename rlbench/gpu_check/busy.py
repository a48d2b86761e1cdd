"""What the GPU does meanwhile: the share of the time in which it works, in which it copies, and the memory it takes.

Kernel and copy times come from a profiled stretch, the wall time from an unprofiled one of as many env steps, since a profiler
slows the host but not the kernels. Work that overlaps counts once. NVML's "utilisation", which counts any moment in which some
kernel ran, however small, is not used.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from rlbench.gpu_check.check import NOT_REACHED, Check
from rlbench.gpu_check.loop import Runner, Stretches, choices_of
from rlbench.gpu_check.rounds import Rounds
from rlbench.measure import NO_CUDA
from rlbench.results import Row
from rlbench.speedups import ChoiceError, Choices

ITERATIONS, QUICK_ITERATIONS = 64, 16  # between two log points
COPIES = ("memcpy", "memset")
GAMES = 1_024
Span = tuple[float, float]
Job = tuple[int, Callable[[], Stretches]]  # environments, and what trains in them


def jobs(check: Check) -> dict[str, Job]:
    """What is looked at, by name; PPO's compiled functions, which take long to build, last."""
    device, iterations = check.device, QUICK_ITERATIONS if check.quick else ITERATIONS

    def poles(count: int, choices: Choices) -> Job:
        return count, lambda: Runner(count, device, check.quick, check.seed, choices, iterations)

    def boards(choices: Choices) -> Job:
        return GAMES, lambda: Rounds(GAMES, device, check.quick, check.seed, choices)

    plain, fast = Choices.plain(device), Choices.fast(device)
    named = {"naive": Choices.naive(), "plain": plain, "fast": fast}
    found = {f"{name}, 8 envs": poles(8, choices) for name, choices in named.items()}
    found |= {f"fused loop, {count:,} envs": poles(count, choices_of(device)) for count in (8, 1_024, 65_536)}
    triton = plain.replace(evaluate="packed_triton", gae="scan")
    for name, choices in {"plain": plain, "packed_triton": triton, "fast": fast}.items():
        found[f"PPO {name}, {GAMES:,} games"] = boards(choices)
    return found


def gpu_use(check: Check) -> Iterator[Row]:
    """A row for each of `jobs`: busy_share, transfer_share, peak_mb, memory_share, gpu_us and wall_us an iteration."""
    if not check.cuda:
        yield check.absent("busy share, transfer share, peak memory", NO_CUDA)
        return
    for name, (num_envs, make) in jobs(check).items():
        if check.over():
            yield check.absent(name, NOT_REACHED, num_envs=num_envs)
            continue
        check.note(name)
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(check.device)
        try:
            yield check.row(name, num_envs=num_envs, **_looked_at(check, num_envs, make()))
        except ChoiceError as error:
            yield check.absent(name, str(error), num_envs=num_envs)
        except Exception as error:  # a finding about this job
            yield check.failed(name, error, num_envs=num_envs)


def _looked_at(check: Check, num_envs: int, runner: Stretches) -> dict[str, Any]:
    from torch.profiler import ProfilerActivity, profile

    runner.stretch()  # compiles, warms up
    wall_s = runner.stretch()  # an env step
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        before = runner.agent.env_steps
        runner.stretch()
        torch.cuda.synchronize(check.device)
        steps = runner.agent.env_steps - before
    spans = device_spans(seen.events())
    work_s = {kind: covered(spans[kind]) / 1e6 / max(1, steps) for kind in spans}
    peak = torch.cuda.max_memory_allocated(check.device)
    total = torch.cuda.get_device_properties(check.device).total_memory
    return {
        **shares(work_s, wall_s),
        "wall_us": wall_s * 1e6 * num_envs,
        "gpu_us": work_s["all"] * 1e6 * num_envs,
        "sps": 1 / wall_s,
        "steps": steps,
        "peak_mb": peak / 1e6,
        "memory_share": peak / total,
    }


def shares(work_s: dict[str, float], wall_s: float) -> dict[str, Any]:
    """Busy and transfer shares of the wall time; nothing where the profiler saw no kernel."""
    if not work_s["all"]:
        return {"verdict": "not measured", "not_measured": "the profiler saw no kernel on this machine"}
    return {"busy_share": work_s["kernels"] / wall_s, "transfer_share": work_s["copies"] / wall_s}


def device_spans(events: Iterable[Any]) -> dict[str, list[Span]]:
    """(start, end) in microseconds of what ran on the device, from a profiler's events: kernels, copies, and all."""
    spans: dict[str, list[Span]] = {"kernels": [], "copies": [], "all": []}
    for event in events:
        if event.device_type != torch.autograd.DeviceType.CUDA or getattr(event, "is_user_annotation", False):
            continue  # an annotation is a range around kernels, idle time between them included
        span = (float(event.time_range.start), float(event.time_range.end))
        kind = "copies" if event.name.lower().startswith(COPIES) else "kernels"
        spans[kind].append(span)
        spans["all"].append(span)
    return spans


def covered(spans: Iterable[Span]) -> float:
    """The length of the union of spans."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
