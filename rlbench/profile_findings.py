"""What a profile says, in sentences and in short tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rlbench.profiling.advice.gains import duration, percent
from rlbench.profiling.findings import Advice, Applied
from rlbench.profiling.light import ALL
from rlbench.profiling.records import TITLES
from rlbench.profiling.report import Report
from rlbench.profiling.text import promise
from rlbench.tuning.agreement import MOST

FACTOR = 1.5  # how far a prediction may be off
TOLD = ("faster", "slower", "no difference seen")  # verdicts of enough pairs to judge a prediction by

Rows = list[dict[str, Any]]


def largest_phase(report: Report) -> str:
    """The phase that takes most, and what Amdahl's law leaves to be had there."""
    phases = [phase for phase in report.evidence.phases if not phase.part_of and phase.name != "other"]
    if not phases:
        return "Nothing was on the clock."
    top = max(phases, key=lambda phase: phase.share)
    most = f"at most {1 / (1 - top.share):.2f} times" if top.share < 0.999 else "without a bound"
    name = TITLES.get(top.name, top.name)
    return (
        f"The largest phase is {name} with {percent(top.share)}; if it cost nothing, training would be {most} as fast."
    )


def first_advice(report: Report) -> str:
    """What to change first."""
    faults = [advice for advice in report.advice if advice.kind == "fault"]
    if not faults:
        return "No fault was found by the rules that are known here."
    return f"First: {faults[0].text}{_promise(faults[0])}"


def _promise(advice: Advice) -> str:
    gain = advice.predicted_gain
    if gain is None or gain < 1.005:
        return " It costs nothing on this machine."
    return f" Predicted: {gain:.2f} times as fast without it."


def predictions(applied: tuple[Applied, ...]) -> Iterator[tuple[str, str]]:
    """For each suggestion that was measured a sentence and its tone."""
    for each in applied:
        if each.ratio != each.ratio:
            yield f"{each.advice}: {each.verdict}.", "note"
            continue
        beside = ""
        if each.predicted is not None and each.verdict in TOLD:
            off = max(each.predicted / each.ratio, each.ratio / each.predicted)
            beside = f", predicted {each.predicted:.2f}: {'within' if off <= FACTOR else 'off by more than'} a factor {FACTOR}"
        seen = "" if each.verdict in ("faster", "slower") else f", {each.verdict}"
        tone = each.verdict if not seen else "none"
        measured = f"measured {each.ratio:.2f} [{each.low:.2f}, {each.high:.2f}] times as fast{seen}"
        yield f"{each.advice}: {measured}{beside}.", tone


def against(report: Report) -> Iterator[str]:
    """What would slow this run down."""
    for advice in report.advice:
        if advice.kind == "against":
            ratio = advice.predicted_gain
            yield f"{advice.text} {advice.evidence}" + (f" Predicted {ratio:.2f} times as fast." if ratio else "")


def price(report: Report) -> str:
    """What watching cost."""
    evidence = report.evidence
    parts = []
    if evidence.overhead is not None:
        parts.append(
            f"the clock {percent(evidence.overhead.clock)} of the time, the sampler {percent(evidence.overhead.sampler)}"
        )
    for name, seen in (("counting", evidence.counted), ("the trace", evidence.trace)):
        if seen is not None and seen.slowdown:
            pace = (
                f"{seen.slowdown:.1f} times the time of" if seen.slowdown >= 1.05 else "no slower within the noise over"
            )
            parts.append(f"{name} {pace} {seen.steps} steps, {duration(seen.seconds)} in all")
    return f"Watching cost: {'; '.join(parts)}." if parts else "What watching cost was not measured."


def waits(report: Report) -> str:
    """How often a step reads from the device, and at how many lines."""
    counted = report.evidence.counted
    if counted is None:
        return "Reads from the device were not counted."
    if not counted.syncs:
        return f"No line reads from the device in {counted.steps} counted steps."
    lines = len({(sync.place.file, sync.place.line) for sync in counted.syncs})
    often = sum(sync.per_step for sync in counted.syncs)
    return f"The device is read {often:.2g} times a step, at {lines} {'line' if lines == 1 else 'lines'}."


def light(report: Report) -> str:
    """How much of the time is explained by what the machine must at least do."""
    whole = next((row for row in report.evidence.light if row.phase == ALL), None)
    if whole is None:
        return "The speed of light was not measured."
    return (
        f"A step takes {duration(whole.seconds)}; its arithmetic, its bytes and the calls of its operators must take "
        f"{duration(whole.floor_s)} on this machine, {percent(whole.share)} of that, set by {whole.bound}."
    )


def hits(applied: Sequence[Applied]) -> str:
    """How many predictions held, of those with enough pairs to tell."""
    pairs = [(each.predicted, each.ratio) for each in applied if each.predicted and each.verdict in TOLD]
    if not pairs:
        return "No prediction was measured in enough pairs to tell."
    held = sum(max(said / seen, seen / said) <= FACTOR for said, seen in pairs)
    return f"{held} of {len(pairs)} predicted gains are within a factor {FACTOR} of what was measured."


def agrees(name: str, distance: float) -> str:
    """Whether the same is learnt, by how far the weights are from plain's after the same few updates."""
    if distance == 0.0:
        return f"Under {name} the weights after a few updates are plain's, bit for bit."
    told = f"Under {name} the weights after a few updates are {distance:.1e} of their way from plain's"
    return f"{told}: {'the same but for rounding' if distance <= MOST else 'another result'}."


def best_ratio(applied: Sequence[Applied]) -> float | None:
    """The largest ratio that was measured and seen to differ; None where there is none."""
    return max((each.ratio for each in applied if each.verdict == "faster"), default=None)


def phase_rows(report: Report) -> Rows:
    """A row for each phase; the parts of a fused call, which another run measured, after all of them."""
    evidence = report.evidence
    return [
        {
            "phase": TITLES.get(phase.name, phase.name) + (f" (part of {phase.part_of})" if phase.part_of else ""),
            "a step": duration(phase.seconds / evidence.steps) if evidence.steps and not phase.part_of else "",
            "share": percent(phase.share),
            "seconds": phase.seconds,
            "calls": phase.calls,
        }
        for phase in evidence.phases
        if phase.share >= 0.0005
    ]


def light_rows(report: Report) -> Rows:
    """Counted work and the least time for it, a step, beside what was measured."""
    return [
        {
            "phase": TITLES.get(row.phase, row.phase),
            "operations": round(row.flops),
            "bytes": round(row.bytes),
            "operators": row.ops,
            "a step": duration(row.seconds),
            "floor": duration(row.floor_s),
            "set by": row.bound,
            "reached": percent(row.share),
        }
        for row in report.evidence.light
    ]


def advice_rows(report: Report, *kinds: str) -> Rows:
    """Advice of these kinds, in its own order; no column of choices where there are none."""
    chosen = [advice for advice in report.advice if advice.kind in kinds]
    rows = [
        {
            "advice": advice.name,
            "what is the matter": f"{advice.text} {advice.evidence}",
            "instead": advice.instead,
            "gain": _gain(advice),
            **({"choice": choice_text(advice)} if any(each.choice for each in chosen) else {}),
            "notebook": advice.notebook,
        }
        for advice in chosen
    ]
    return rows or [{"advice": "none"}]


def _gain(advice: Advice) -> str:
    if advice.kind != "against":
        return promise(advice).strip("[]")
    return f"predicted {advice.predicted_gain:.2f}x" if advice.predicted_gain is not None else ""


def choice_text(thing: Advice | Applied) -> str:
    """The slots and settings that do it."""
    return ", ".join(f"{name}={value}" for name, value in thing.choice.items())


def applied_rows(applied: Sequence[Applied]) -> Rows:
    """Predicted beside measured."""
    return [
        {
            "advice": each.advice,
            "choice": choice_text(each),
            "predicted": each.predicted,
            "measured": each.ratio,
            "low": each.low,
            "high": each.high,
            "A/A low": each.aa_low,
            "A/A high": each.aa_high,
            "verdict": each.verdict,
        }
        for each in applied
    ]
