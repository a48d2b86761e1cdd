"""What a loop does between the calls that are found: a gap is attributed by its neighbours.

Three calls say for certain what a loop is at: the env's step, backward, and the optimizer's step. What lies between two of
them is named once the second is reached:

    env       … env        a forward pass is the choice of an action; before it the transition is stored
    env       … backward   a minibatch is sampled until the first forward pass; from there on it is forward, the loss included
    backward  … optimizer  gradients are clipped: optimizer
    optimizer … env        as after env, but what comes before a forward pass is Python: logging, bookkeeping
    optimizer … backward   as after env: the next minibatch

Storing and sampling in one gap cannot be told apart by neighbours: they are split by what the sampler saw there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlbench.phases import OTHER

if TYPE_CHECKING:
    from rlbench.profiling.accounts import Account

ENV, BACKWARD, OPTIMIZER, PYTHON, FORWARD = "env", "backward", "optimizer", "python", "forward"
# The pieces between two decisive calls; acting and learning are forward passes without and with gradients.
GAP, ACTING, LEARNING = "gap", "acting", "learning"
TO_SPLIT = "store or sample"
SET_UP = "set-up"  # before the first decisive call


def names_of(before: str, reached: str, pieces: Sequence[Account]) -> list[str]:
    """The phases of the pieces between two decisive calls; see the table at the top."""
    if before == BACKWARD and reached == OPTIMIZER:
        return [OPTIMIZER] * len(pieces)
    forward = "action" if reached == ENV else FORWARD
    if not before:
        opening = SET_UP
    elif reached == ENV:
        opening = PYTHON if before == OPTIMIZER else "store"
    else:
        opening = TO_SPLIT if before == ENV else "sample"
    names, begun = [], False
    for piece in pieces:
        begun = begun or piece.name != GAP
        names.append(forward if begun else opening)
    return names


def split(totals: Mapping[str, Account], seen: Mapping[str, int]) -> dict[str, float]:
    """Seconds by phase, "other" last; what was stored or sampled in one gap is split as the samples in gaps were: `seen`, by what
    their functions are named for."""
    spent = {name: account.ns for name, account in totals.items() if account.ns or account.calls}
    joint = spent.pop(TO_SPLIT, 0)
    store, sample = seen.get("store", 0), seen.get("sample", 0)
    part = store / (store + sample) if store + sample else 0.0
    for name, amount in (("store", part * joint), ("sample", (1 - part) * joint)):
        if amount:
            spent[name] = spent.get(name, 0) + amount
    rest = spent.pop(OTHER, 0)
    return {**{name: amount / 1e9 for name, amount in spent.items()}, OTHER: rest / 1e9}
