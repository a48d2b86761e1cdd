"""What a profile says, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from rlbench.profiling.advice.gains import duration, percent
from rlbench.profiling.findings import Advice, Applied
from rlbench.profiling.records import TITLES
from rlbench.profiling.report import Report

FACTOR = 1.5  # how far a prediction may be off


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
        if each.predicted is not None:
            off = max(each.predicted / each.ratio, each.ratio / each.predicted)
            beside = f", predicted {each.predicted:.2f}: {'within' if off <= FACTOR else 'off by more than'} a factor {FACTOR}"
        tone = each.verdict if each.verdict in ("faster", "slower") else "note"
        yield f"{each.advice}: measured {each.ratio:.2f} [{each.low:.2f}, {each.high:.2f}] times as fast{beside}.", tone


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
            parts.append(
                f"{name} {seen.slowdown:.1f} times the time of {seen.steps} steps, {duration(seen.seconds)} in all"
            )
    return f"Watching cost: {'; '.join(parts)}." if parts else "What watching cost was not measured."
