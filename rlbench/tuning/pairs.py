"""Two slots changed at once: what is no gain alone may be one together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from rlbench.speedups import SPEEDUPS
from rlbench.tuning.candidates import NAIVE_ONES, Space
from rlbench.tuning.contender import Candidate

PROMISE = 0.8  # a pair is tried where the ratios of its parts, multiplied, reach it


def pairs(space: Space, best: Candidate, alone: Mapping[tuple[str, str], float]) -> list[Candidate]:
    """Valid ones, the most promising first.

    Args:
        alone: by (slot, variant), the ratio of the best with that change over the best. A change without one, since it cannot be
            used beside the best as it is, counts as 1.
    """
    used = space.in_use(best.choices)
    every = (
        {(slot, variant) for slot in space.slots for variant in SPEEDUPS[slot].variants} - space.left_out - NAIVE_ONES
    )
    ratios = {change: alone.get(change, 1.0) for change in every if used.get(change[0]) != change[1]}
    found: dict[tuple, tuple[float, Candidate]] = {}
    for one, other in itertools.combinations(sorted(ratios), 2):
        promise = ratios[one] * ratios[other]
        if one[0] == other[0] or promise < PROMISE:
            continue
        choices = space.of({**best.choices.to_dict(), **dict((one, other))})
        if choices is not None and {one, other} <= set(space.in_use(choices).items()):
            candidate = space.candidate(choices, best.threads, best.config)
            found.setdefault(candidate.key, (promise, candidate))
    return [candidate for _, candidate in sorted(found.values(), key=lambda each: -each[0])]
