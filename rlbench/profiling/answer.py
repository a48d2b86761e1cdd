"""The answer in two or three sentences: the largest phase, what to change first, and the bound of that."""

from __future__ import annotations

from collections.abc import Sequence

from rlbench.profiling.advice.gains import LARGEST, bound, percent
from rlbench.profiling.criteria import criteria
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice, Applied, Criterion
from rlbench.profiling.records import TITLES, PhaseTime

SPEED_UP = "speed-up"
MEASURED = ("faster", "slower", "no difference seen")  # verdicts of enough pairs


def sentences(evidence: Evidence, advice: Sequence[Advice]) -> tuple[str, ...]:
    """Where the time goes, the first fault, and what no change of it can exceed (Amdahl)."""
    own = [phase for phase in evidence.phases if not phase.part_of and phase.share > 0]
    if not evidence.seconds or not own:
        return ("Nothing was on the clock, so there is nothing to say.",)
    said = [_largest(max(own, key=lambda phase: phase.share), evidence)]
    first = next((each for each in advice if each.kind == "fault"), None)
    if first is None:
        return (*said, no_fault(evidence)) if evidence.steps else tuple(said)
    said.append(f"To change first: {first.text}{_gain(first)}")
    if first.bound and costs(first):
        said.append(f"No change of that part alone can make the run more than {first.bound:.2f} times as fast.")
    return tuple(said)


def _largest(top: PhaseTime, evidence: Evidence) -> str:
    text = f"Most of the time, {percent(top.share)}, goes into {_name(top)}"
    parts = [phase for phase in evidence.phases if phase.part_of == top.name]
    if parts:  # the call is most of the run: what the run would be without it says nothing
        part = max(parts, key=lambda phase: phase.share)
        return (
            f"{text}, many parts in one call. The largest of them is {_name(part)}, {percent(part.share)} of a second run "
            f"{parts_from(top.name)}."
        )
    most = bound(top.share)
    limit = f"at most {most:.2f} times as fast" if most < LARGEST else "faster without a bound"
    return f"{text}; without it the run would be {limit}."


def _name(phase: PhaseTime) -> str:
    return TITLES.get(phase.name, phase.name)


def parts_from(fused: str) -> str:
    """How the run was set that shows the parts of a fused call."""
    return "under loop=python" if fused == "iterations" else "under an eager update"


def costs(advice: Advice) -> bool:
    """Whether it takes time on this machine, or may do."""
    return advice.predicted_gain is None or advice.predicted_gain >= 1.005


def _gain(advice: Advice) -> str:
    if not costs(advice):
        return " It costs nothing on this machine."
    if advice.predicted_gain is None:
        return ""
    metric = "" if advice.metric == "steps a second" else f" in {advice.metric}"
    return f" Predicted with that changed: {advice.predicted_gain:.2f} times as fast{metric}."


def no_fault(evidence: Evidence) -> str:
    """What it means that no rule found a fault: less, where a pass is missing."""
    if evidence.counted is None:
        return "No fault was found, but synchronisations and operators were not counted, so some could not be seen."
    return "No fault was found: no part of the time buys nothing, by the rules that are known here."


def with_speed_up(table: Sequence[Criterion], evidence: Evidence, applied: Sequence[Applied]) -> tuple[Criterion, ...]:
    """The criteria; once suggestions were measured in pairs, the speed-up is the largest of theirs."""
    ratios = [each.ratio for each in applied if each.verdict in MEASURED]
    if not ratios:
        return tuple(table)
    judged = next(each for each in criteria(evidence, max(ratios)) if each.name == SPEED_UP)
    return tuple(judged if each.name == SPEED_UP else each for each in table)
