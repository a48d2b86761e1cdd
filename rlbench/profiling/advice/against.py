"""What would slow this run down, said before somebody tries it. Each from this run's numbers and one price that is stated."""

from __future__ import annotations

import math

from rlbench.profiling.advice.envs import env_phase
from rlbench.profiling.advice.gains import duration
from rlbench.profiling.advice.scopes import Scopes
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice

LAUNCH_S = 5e-6  # to start one operator on a GPU from Python, as commonly measured; not measured here
PIPE_S = 1e-4  # there and back through a pipe to a worker process
COMPILE_S = 15.0  # to compile an update the first time
PARTS = ("forward", "backward", "optimizer")
UPDATE = (*PARTS, "update")
UNCOMPILED = ("eager", "native")  # variants of an update


def against(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """All that apply."""
    if not evidence.steps:
        return []
    return [
        *_gpu(evidence),
        *_workers(evidence),
        *_pinning(evidence),
        *_compile(evidence),
        *_threads(evidence),
        *_bfloat16(evidence),
    ]


def _gpu(evidence: Evidence) -> list[Advice]:
    """Where each operator is called on its own: nothing is known of those within a fused or compiled call."""
    if evidence.share("update", "iterations") or (evidence.counted and evidence.counted.uncompiled):
        return []
    rows = [row for row in evidence.light if row.phase in ("action", *PARTS)]
    seconds, operators = sum(row.seconds for row in rows), sum(row.ops for row in rows)
    least = operators * LAUNCH_S
    if evidence.device != "cpu" or not seconds or least < seconds:
        return []
    step = evidence.seconds / evidence.steps
    return [
        _no(
            "no_gpu_at_this_size",
            "A GPU would not make this run faster.",
            f"A step starts {operators:.0f} operators; at {duration(LAUNCH_S)} each to launch that is {duration(least)}, against "
            f"{duration(seconds)} that they take on this CPU, all told.",
            "Stay on the CPU, or make the work larger first: many envs, large minibatches, one call for an update.",
            step / (step - seconds + least),
            "01",
        )
    ]


def _workers(evidence: Evidence) -> list[Advice]:
    env = env_phase(evidence)
    if env is None or not env.calls:
        return []
    each, step = env.seconds / env.calls, evidence.seconds / evidence.steps
    if each > 2 * PIPE_S:
        return []
    return [
        _no(
            "no_worker_processes",
            "Worker processes for the environments would slow this run down.",
            f"A call of the env takes {duration(each)}; there and back to another process is about {duration(PIPE_S)}.",
            "Step the envs in this process, several in one call where they can (`environments=batched`, `native`).",
            step / (step - each + PIPE_S + each),
            "05",
        )
    ]


def _pinning(evidence: Evidence) -> list[Advice]:
    if evidence.device != "cpu":
        return []
    return [
        _no(
            "no_pinned_memory",
            "Pinned memory and non-blocking copies do nothing on the CPU.",
            "There is no device to copy to; pinning costs a copy of its own.",
            "Leave them out until the run is on a GPU.",
            None,
            "04",
        )
    ]


def _compile(evidence: Evidence) -> list[Advice]:
    """Where updates have a time of their own and are not compiled yet."""
    run, share = evidence.run, evidence.share(*UPDATE)
    if run is None or not share:
        return []
    config, slots = run.config, run.choices.to_dict()
    if slots["update" if run.trainer == "dqn" else "ppo_update"] not in UNCOMPILED:
        return []
    training = config.total_timesteps / config.num_envs * evidence.seconds / evidence.steps
    updates = training * share
    if updates > 2 * COMPILE_S:
        return []
    return [
        _no(
            "no_compile_for_a_short_run",
            "torch.compile would not pay in a run this short.",
            f"All updates of the whole training take {duration(updates)}; compiling takes about {duration(COMPILE_S)} before the "
            "first of them, and seldom more than halves them.",
            "Eager or native updates; compile for runs of many minutes.",
            training / (training - updates / 2 + COMPILE_S),
            "08",
        )
    ]


def _threads(evidence: Evidence) -> list[Advice]:
    probe = evidence.threads
    if probe is None or probe.now not in probe.seconds:
        return []
    more = [
        number
        for number in probe.seconds
        if number > probe.now and 1.05 * probe.seconds[probe.now] < probe.seconds[number] < math.inf
    ]
    return [
        _no(
            "no_more_threads",
            f"More torch threads would slow this run down: {number} instead of {probe.now}.",
            f"Tried in turns in this run: {duration(probe.seconds[number])} a step against {duration(probe.seconds[probe.now])}.",
            f"Stay at {probe.now}; use the other cores for other seeds.",
            probe.seconds[probe.now] / probe.seconds[number],
            "12",
        )
        for number in more[:1]
    ]


def _bfloat16(evidence: Evidence) -> list[Advice]:
    peaks = evidence.peaks
    if peaks is None or evidence.device != "cpu" or "bfloat16" not in peaks.matmul:
        return []
    ratio = peaks.matmul["bfloat16"] / peaks.matmul["float32"]
    if ratio > 1.5:
        return []
    return [
        _no(
            "no_bfloat16_here",
            "Lower precision would not make this CPU faster.",
            f"Its best rate of matrix products in bfloat16 is {ratio:.2f} times that in float32, before any casting.",
            "Stay in float32.",
            min(ratio, 1.0),
            "07",
        )
    ]


def _no(name: str, text: str, evidence: str, instead: str, gain: float | None, notebook: str) -> Advice:
    return Advice(name, "against", text, evidence, instead, gain, None, notebook=notebook)
