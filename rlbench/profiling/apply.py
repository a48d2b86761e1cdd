"""Suggestions measured: each against the run as it is, in pairs of blocks without a profile; then those that helped together."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rlbench.profiling.evidence import TrainerRun
from rlbench.profiling.findings import Advice, Applied
from rlbench.progress import Progress
from rlbench.speedups import SPEEDUPS, Choices
from rlbench.tuning.contender import Candidate, Contender
from rlbench.tuning.race import Race, Standing

TOP = 4
LEARNT = "transitions learnt a second"


def apply(
    run: TrainerRun,
    advice: Sequence[Advice],
    env: Any = None,
    *,
    budget_s: float = 60.0,
    block_s: float = 0.25,
    progress: bool | None = None,
) -> tuple[Applied, ...]:
    """Measure the top suggestions that have a choice, for about `budget_s` seconds in all; the order is that of the advice.

    Args:
        env: as for the trainer; that of the run where left out.
    """
    env = run.source.given if env is None else env
    chosen = [each for each in advice if each.kind != "against" and each.choice][:TOP]
    if not chosen:
        return ()
    threads = torch.get_num_threads()
    base = Contender(candidate_of(run, {}, threads), env, run.device)
    found: list[Applied] = []
    try:
        with Progress(len(chosen) + 1, "apply", "suggestions", progress) as bar:
            each_s = budget_s / (len(chosen) + 1)
            for suggestion in chosen:
                found.append(_measure(run, base, suggestion, env, threads, each_s, block_s))
                bar.advance(1, suggestion.name)
            together = _together(run, found)
            if together is not None:
                found.append(_measure(run, base, together, env, threads, each_s, block_s))
            bar.advance(1, "together")
    finally:
        torch.set_num_threads(threads)
        base.close()
    return tuple(found)


def candidate_of(run: TrainerRun, choice: Mapping[str, Any], threads: int) -> Candidate:
    """The run with slots, settings or threads changed."""
    fields = {field.name for field in dataclasses.fields(run.config)}
    slots = {n: value for n, value in choice.items() if n in SPEEDUPS and value in SPEEDUPS[n].variants}
    settings = {n: value for n, value in choice.items() if n in fields and n not in slots}  # a name may be both
    unknown = choice.keys() - slots.keys() - settings.keys() - {"threads"}
    if unknown:
        raise ValueError(f"neither a slot with that variant nor a setting nor threads: {', '.join(sorted(unknown))}")
    choices: Choices = run.choices.replace(**slots) if slots else run.choices
    return Candidate(choices, choice.get("threads", threads), run.config.replace(**settings), dict(choice))


def _measure(
    run: TrainerRun, base: Contender, advice: Advice, env: Any, threads: int, seconds: float, block_s: float
) -> Applied:
    try:
        other = Contender(candidate_of(run, advice.choice, threads), env, run.device)
    except ValueError as error:  # of settings and slots; more is found out when the trainer is made
        return applied_of(advice, Standing(base.candidate, *[math.nan] * 6, 0, 0.0, 0.0, why_not=str(error)))
    rate = learnt if advice.metric == LEARNT else None
    race = Race(base, [other], block_s=block_s, rate=rate)
    try:
        standing = race.run(time.perf_counter() + seconds, rounds=20, drop=False)[1]
    finally:
        other.close()
    return applied_of(advice, standing)


def learnt(candidate: Candidate, steps: int, updates: int, seconds: float) -> float:
    """Transitions learnt a second."""
    return updates * candidate.config.batch_size / seconds


def applied_of(advice: Advice, standing: Standing) -> Applied:
    return Applied(
        advice.name,
        dict(advice.choice),
        advice.predicted_gain,
        standing.ratio,
        standing.low,
        standing.high,
        standing.aa_low,
        standing.aa_high,
        f"could not run: {standing.why_not}" if standing.why_not else standing.verdict,
    )


def _together(run: TrainerRun, found: Sequence[Applied]) -> Advice | None:
    """What helped, in one: the best, and what can be chosen beside it. None where that is one alone.

    Settings that are another task to learn are left out.
    """
    helped = [each for each in found if each.verdict == "faster" and not {"hidden", "batch_size"} & set(each.choice)]
    choice, parts = {}, 0
    for each in sorted(helped, key=lambda applied: -applied.ratio):
        both = {**each.choice, **choice}  # where two want one slot, the better one has it
        if both != choice and _valid(run, both):
            choice, parts = both, parts + 1
    return Advice("together", "option", "", "", "", None, None, choice=choice) if parts > 1 else None


def _valid(run: TrainerRun, choice: Mapping[str, Any]) -> bool:
    """Whether a trainer would run by the choice."""
    try:
        candidate = candidate_of(run, choice, 1)
        candidate.choices.check(run.trainer, candidate.config, run.device, run.source)
    except ValueError:
        return False
    return True
