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
    """Where the time goes, the first fault that takes time, and what no change of it can exceed (Amdahl)."""
    own = [phase for phase in evidence.phases if not phase.part_of and phase.share > 0]
    if not evidence.seconds or not own:
        return ("Nothing was on the clock, so there is nothing to say.",)
    said = [_largest(max(own, key=lambda phase: phase.share), evidence)]
    faults = [each for each in advice if each.kind == "fault"]
    first = next(filter(costs, faults), None)
    if first is None:
        found = [no_cost(faults[0])] if faults else [no_fault(evidence)] if evidence.steps else []
        return (*said, *found, *_most_to_be_had(advice))
    said.append(f"To change first: {first.text}{_gain(first)}")
    if first.bound and first.bound > 1.01 * (first.predicted_gain or 1.0):
        said.append(f"No change of that part alone can make the run more than {first.bound:.2f} times as fast.")
    return tuple(said)


def subject(evidence: Evidence) -> str:
    """What was profiled."""
    if evidence.what == "block":
        return "a block" if evidence.name == "block" else f"block {evidence.name}"
    return f"script {evidence.name}" if evidence.what == "script" else f"{evidence.what.upper()} on {evidence.name}"


def rate(evidence: Evidence) -> str:
    """Steps a second after a comma; of several envs a step is one of all."""
    if not evidence.seconds or not evidence.steps:
        return ""
    envs = evidence.run.config.num_envs if evidence.run else 1
    of = f" of {envs} environments" if envs > 1 else ""
    return f", {evidence.steps / evidence.seconds:,.0f} steps{of} a second"


def _largest(top: PhaseTime, evidence: Evidence) -> str:
    text = (
        f"{'Most' if top.share > 0.5 else 'The largest part'} of the time, {percent(top.share)}, goes into {_name(top)}"
    )
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


def no_cost(fault: Advice) -> str:
    """Of the first fault, where none takes time here."""
    return f"No fault was found that takes time on this machine. One takes none here: {fault.text}"


def _most_to_be_had(advice: Sequence[Advice]) -> tuple[str, ...]:
    """Without a fault: the other way to build it, or the line, that promises most."""

    def promise(each: Advice) -> float:
        return each.predicted_gain or each.bound or 1.0

    options = [each for each in advice if each.kind == "option" and promise(each) >= 1.05]
    if not options:
        return ()
    best = max(options, key=promise)
    return (f"To look at first: {best.text}",)


def _gain(advice: Advice) -> str:
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
