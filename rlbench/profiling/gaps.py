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

from rlbench.phases import OTHER

ENV, BACKWARD, OPTIMIZER, PYTHON, FORWARD = "env", "backward", "optimizer", "python", "forward"
DECISIVE = (ENV, BACKWARD, OPTIMIZER)
# The pieces between two decisive calls; acting and learning are forward passes without and with gradients.
GAP, ACTING, LEARNING = "gap", "acting", "learning"
TO_SPLIT = "store or sample"


def names_of(before: str, reached: str, pieces: list[list]) -> list[str]:
    """The phases of the pieces between two decisive calls; see the table at the top."""
    if before == BACKWARD and reached == OPTIMIZER:
        return [OPTIMIZER] * len(pieces)
    forward = "action" if reached == ENV else FORWARD
    if not before:
        opening = OTHER
    elif reached == ENV:
        opening = PYTHON if before == OPTIMIZER else "store"
    else:
        opening = TO_SPLIT if before == ENV else "sample"
    names, begun = [], False
    for kind, _ in pieces:
        begun = begun or kind != GAP
        names.append(forward if begun else opening)
    return names
