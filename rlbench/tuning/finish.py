"""The end of a search: the best that learns what plain() learns, and a last race of the two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rlbench.tuning.agreement import MOST, Agreement, mean_return
from rlbench.tuning.candidates import settings_of
from rlbench.tuning.contender import Candidate, reason
from rlbench.tuning.race import FIRST_ROUNDS, Race
from rlbench.tuning.tuned import Tuned

if TYPE_CHECKING:
    from rlbench.tuning.search import Search

FINAL_SHARE = 0.3  # of the budget, for all this
RETURN_SHARE = 0.06  # of the budget, for each of the two trainings that give a return
LAST_ROUNDS = 20


def finish(search: Search, eval_env: Any = None) -> Tuned:
    """Check the best, then the next best where it learns something else; race it against plain().

    The last race is short where the search was interrupted.
    """
    space, plain = search.space, search.plain
    best, apart, rejected = _agreeing(search)
    base = search.contender(plain)
    others = [] if best.key == plain.key else [search.contender(best)]
    for contender in (base, *others):
        contender.give_up = lambda: False
    returns, steps = (None, 0) if search.interrupted or not others else _returns(search, best, eval_env)
    seed, asked = search.seed + search.races, {"on_block": search.show, "clock": search.clock}
    race = Race(base, others, block_s=search.block_s, seed=seed, **asked)
    if search.interrupted:
        standings = race.run(math.inf, rounds=FIRST_ROUNDS, drop=False)
    else:
        standings = race.run(search.begun + search.budget_s, rounds=LAST_ROUNDS, drop=False)
    search.keep(standings)
    return Tuned(
        choices=best.choices,
        threads=best.threads,
        settings=settings_of(best.config, space.config),
        used=space.in_use(best.choices),
        config=space.config,
        device=str(space.device),
        final=standings[-1],
        distance=apart,
        standings=search.standings,
        returns=returns,
        return_steps=steps,
        left_out=list(dict.fromkeys(search.left_out)),
        rejected=rejected,
        budget_s=search.budget_s,
        seconds=search.clock() - search.begun,
        interrupted=search.interrupted,
        rows=search.rows,
    )


def _agreeing(search: Search) -> tuple[Candidate, float, list[tuple[str, float]]]:
    """The fastest that learns what plain() learns, its distance, and those that were rejected before it."""
    rejected: list[tuple[str, float]] = []
    wrong: list[Any] = []  # their changes: who makes them too, and others, is passed over
    agreement = Agreement(search.plain, search.env, str(search.space.device))
    faster = sorted(search.relative.values(), key=lambda each: -each[1])
    ranking = [search.best, *(candidate for candidate, ratio in faster if ratio > 1), search.plain]
    for candidate in {each.key: each for each in ranking}.values():
        if candidate.key == search.plain.key:
            break
        if any(changes <= candidate.changed.items() for changes in wrong):
            continue
        apart = _distance(search, agreement, candidate)
        if apart <= (0.0 if search.space.exact(candidate) else MOST):
            return candidate, apart, rejected
        if search.space.statistical(candidate) and math.isfinite(apart):
            return candidate, apart, rejected
        rejected.append((candidate.label, apart))
        wrong.append(candidate.changed.items())
    return search.plain, 0.0, rejected


def _distance(search: Search, agreement: Agreement, candidate: Candidate) -> float:
    """Infinite where it fails."""
    try:
        return agreement.distance(candidate)
    except Exception as error:
        search.left_out.append(f"{candidate.label}: {reason(error)}")
        return math.inf


def _returns(search: Search, best: Candidate, eval_env: Any) -> tuple[tuple[float, float] | None, int]:
    """Of plain() and the best after as many env steps as plain() makes in a small part of the budget."""
    config, left = search.space.config, search.begun + search.budget_s - search.clock()
    if left < 3 * RETURN_SHARE * search.budget_s or not config.eval_episodes:
        return None, 0
    rate = max((s.rate for s in search.standings if s.candidate.key == search.plain.key and s.rounds), default=0.0)
    steps = min(config.total_timesteps, int(rate * RETURN_SHARE * search.budget_s))
    if steps < 2 * getattr(config, "learning_starts", getattr(config, "num_steps", 0) * config.num_envs / 2):
        return None, 0
    found = []
    for candidate in (search.plain, best):
        value = mean_return(candidate, search.env, str(search.space.device), steps, eval_env)
        search.show()
        if value is None:
            search.interrupted = True
            return None, 0
        found.append(value)
    return (found[0], found[1]), steps
