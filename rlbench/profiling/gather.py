"""From what the passes saw to one record: the evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rlbench.machine import describe
from rlbench.profiling.advice.gains import duration
from rlbench.profiling.evidence import Evidence, TrainerRun
from rlbench.profiling.gaps import SET_UP
from rlbench.profiling.light import speed_of_light
from rlbench.profiling.limits import Overhead, Twins
from rlbench.profiling.minibatch import minibatch_of
from rlbench.profiling.peaks import measure_peaks
from rlbench.profiling.records import PHASES, Counted, PhaseTime, Trace, Work
from rlbench.profiling.session import Session
from rlbench.profiling.twins import make_twins

# Done for updates, not for steps of the env: PPO has thousands of steps between two rounds of updates.
OF_UPDATES = ("sample", "transfer", "forward", "backward", "optimizer", "update", "advantages", "old_log_probs")
COMPILING = 0.02  # of the time on the clock: what torch.compile may take without a word


def evidence_of(
    session: Session,
    what: str,
    name: str,
    *,
    run: TrainerRun | None = None,
    extra_work: Sequence[Work] = (),
    parts: Sequence[PhaseTime] = (),
) -> Evidence:
    """What a session that is closed has seen, and this machine's peaks, measured now.

    Args:
        extra_work: arithmetic a step that no dispatcher sees, by phase; `ops` and the counts are those of one step.
        parts: phases of a fused call, from another run.
    """
    set_up_s = session.clock.totals.of(SET_UP).ns / 1e9
    seconds = sum(each.spent for each in session.clock_passes()) - set_up_s
    steps, updates = _counts(session)
    phases = phase_times(session, seconds)
    counted = _counted(session, phases, steps, updates)
    trace = _trace(session, phases, steps, updates)
    phases = with_waits(phases, trace, steps)
    on_clock = bool(seconds and session.clock.totals.counts)
    peaks = measure_peaks(session.device) if on_clock else None
    light = speed_of_light(phases, counted, steps, peaks, extra_work) if peaks and steps and counted else ()
    return Evidence(
        what=what,
        name=name,
        device=str(session.device),
        seconds=seconds,
        steps=steps,
        updates=updates,
        episodes=session.clock.totals.episodes,
        phases=(*phases, *parts),
        lines=session.sampler.lines({phase.name: phase.share for phase in phases}),
        counted=counted,
        trace=trace,
        device_use=session.device_sampler.use(),
        threads=None if session.of("threads") is None else session.of("threads").probing.probe(),
        peaks=peaks,
        light=light,
        twins=twins_of(session, counted, phases),
        overhead=_overhead(session, seconds),
        run=run,
        machine=describe(steal_interval_s=0).to_dict(),
        notes=(*session.notes, *_notes(session, updates, set_up_s, seconds)),
    )


def phase_times(session: Session, seconds: float) -> tuple[PhaseTime, ...]:
    """Own time of each phase, in the order of the tables; those of a trainer's own stand before what lies between phases.

    What came before the first step is none of the loop's.
    """
    clock = session.clock
    spent = clock.totals.seconds(session.sampler.gaps)
    counts = clock.totals.counts
    order = {name: place for place, name in enumerate(PHASES)}
    rest = order["sync"]
    names = sorted(spent, key=lambda name: order.get(name, rest - 0.5))
    return tuple(
        PhaseTime(
            name,
            spent[name],
            spent[name] / seconds if seconds else 0.0,
            counts.get(name, 0),
            clock.totals.env_cpu_s if name == "env" else None,
        )
        for name in names
        if name != SET_UP and (spent[name] or name == "other")
    )


def with_waits(phases: tuple[PhaseTime, ...], trace: Trace | None, steps: int) -> tuple[PhaseTime, ...]:
    """On a device, what the host waited for it in each phase, by the trace, as time of the phase "sync"; the sum stays."""
    if trace is None or not trace.steps or not trace.sync_by_phase:
        return phases
    waited = {
        phase.name: min(0.95 * phase.seconds, trace.sync_by_phase.get(phase.name, 0.0) / trace.steps * steps)
        for phase in phases
        if phase.name != "sync"
    }
    whole = sum(phase.seconds for phase in phases)

    def changed(phase: PhaseTime, seconds: float) -> PhaseTime:
        return dataclasses.replace(phase, seconds=seconds, share=phase.share + (seconds - phase.seconds) / whole)

    made = [changed(p, p.seconds - waited[p.name]) if p.name in waited else p for p in phases]
    if not any(phase.name == "sync" for phase in made):
        made.insert(max(0, len(made) - 1), PhaseTime("sync", 0.0, 0.0, 0))
    return tuple(changed(p, p.seconds + sum(waited.values())) if p.name == "sync" else p for p in made)


def twins_of(session: Session, counted: Counted | None, phases: Sequence[PhaseTime]) -> Twins | None:
    """The step rebuilt, with the wait of the env in it where it waits."""
    if counted is None:
        return None
    env = next((phase for phase in phases if phase.name == "env"), None)
    waits = env is not None and env.calls and env.cpu_s is not None
    wait_s = (env.seconds - env.cpu_s) / env.calls if waits else 0.0
    return make_twins(counted.products, minibatch_of(counted), session.device, wait_s=wait_s)


def _counts(session: Session) -> tuple[int, int]:
    """Steps and updates in the clocked passes; without an env, steps are those of the optimizer."""
    if session.counter is not None:
        return session.steps, session.updates
    clock = session.clock
    return clock.totals.steps or clock.totals.updates, clock.totals.updates


def _counted(session: Session, phases: Sequence[PhaseTime], steps: int, updates: int) -> Counted | None:
    """The counting pass, its counts as if it had had as many updates a step as the clocked pass."""
    done = session.of("counting")
    if done is None or not (done.steps or done.updates):
        return None
    counted = session.counting.counted(_seconds_a_step(phases, steps, updates, *session.counting.seen))
    if not (steps and updates and counted.steps and counted.updates):
        return counted
    factor = (updates / steps) / (counted.updates / counted.steps)

    def rated(rows: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            dataclasses.replace(row, per_step=row.per_step * factor) if row.phase in OF_UPDATES else row for row in rows
        )

    work = tuple(
        dataclasses.replace(w, flops=round(w.flops * factor), bytes=round(w.bytes * factor), ops=round(w.ops * factor))
        if w.phase in OF_UPDATES
        else w
        for w in counted.work
    )
    return dataclasses.replace(counted, syncs=rated(counted.syncs), op_lines=rated(counted.op_lines), work=work)


def _seconds_a_step(
    phases: Sequence[PhaseTime], steps: int, updates: int, some: int, with_updates: int
) -> float | None:
    """What steps with that many updates among them take by the clock; None where the clock saw none of them."""
    learning = sum(phase.seconds for phase in phases if phase.name in OF_UPDATES)
    collecting = sum(phase.seconds for phase in phases) - learning
    if not steps or not some:
        return None
    of_updates = with_updates * learning / updates if updates else 0.0
    return collecting / steps + of_updates / some


def _trace(session: Session, phases: Sequence[PhaseTime], steps: int, updates: int) -> Trace | None:
    done = session.of("trace")
    if done is None:
        return None
    return session.tracing.trace(_seconds_a_step(phases, steps, updates, done.steps, done.updates))


def _overhead(session: Session, seconds: float) -> Overhead | None:
    windows = session.windows
    if not seconds or not windows.all_s:
        return None
    return Overhead(windows.cost, session.sampler.cost_s / seconds)


def _notes(session: Session, updates: int, set_up_s: float, seconds: float) -> list[str]:
    notes = []
    compile_s = sum(each.compile_s for each in session.clock_passes())
    if compile_s > COMPILING * seconds:
        notes.append(
            f"torch.compile took {duration(compile_s)} of the {duration(seconds)} on the clock, in the phases that called "
            "what it compiled: profile for longer, or begin when all is compiled."
        )
    if set_up_s > 0.01:
        notes.append(f"Before the first step {duration(set_up_s)} went into setting up: not in the shares.")
    if not session.clock.totals.counts:
        notes.append(
            "No env's step, module, backward or optimizer was called in this thread while the clock ran: nothing to tell apart. "
            'Name parts with `with rlbench.phase("name"):`.'
        )
    if any(each.name == "warm-up" for each in session.passes):
        notes.append("The run ended before learning began, or soon after: shares are those of its start.")
    elif not updates and session.clock.totals.counts:
        notes.append("No optimizer's step was seen: the shares are those of acting alone.")
    for name, lost in (("counting", "synchronisations, operators and arithmetic"), ("trace", "operators by self time")):
        if session.of(name) is None:
            notes.append(f"The run was over before the {name} pass: {lost} were not measured.")
    return notes
