"""What to do about it: rules that read the evidence and nothing else."""

from __future__ import annotations

from rlbench.profiling.advice.against import against
from rlbench.profiling.advice.envs import env_waits, file_each_episode, recomputed_features
from rlbench.profiling.advice.options import options
from rlbench.profiling.advice.ours import with_choice
from rlbench.profiling.advice.reads import grad_while_acting, round_trip, sync_each_step
from rlbench.profiling.advice.samples import loop_over_samples, stacked_replay
from rlbench.profiling.advice.scopes import Scopes
from rlbench.profiling.advice.settings import small_batch, too_many_threads, too_wide
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice

# Those that explain lines come before those that would claim the same lines in a more general way.
RULES = (
    *(env_waits, file_each_episode, recomputed_features, loop_over_samples, stacked_replay, sync_each_step, round_trip),
    *(grad_while_acting, too_many_threads, too_wide, small_batch, options, against),
)
KINDS = ("fault", "option", "against")


def advise(evidence: Evidence) -> tuple[Advice, ...]:
    """Advice in the order in which to follow it: faults by predicted gain, other ways to build it, then what to leave alone."""
    scopes = Scopes(evidence)
    found = [with_choice(advice, evidence) for rule in RULES for advice in rule(evidence, scopes)]
    against = {advice.name for advice in found if advice.kind == "against"}
    return tuple(sorted((each for each in found if not _contradicted(each, against)), key=_rank))


def _contradicted(advice: Advice, against: set[str]) -> bool:
    """Whether it comes down to compiling, which would not pay in this run."""
    compiling = advice.name == "update_in_one_call" and "native" not in advice.choice.values()
    return compiling and "no_compile_for_a_short_run" in against


def _rank(advice: Advice) -> tuple[int, float, bool]:
    libraries = bool(advice.places) and all(place.whose != "yours" for place in advice.places)
    return KINDS.index(advice.kind), -(advice.predicted_gain or 1.0), libraries
