"""Faults of minibatches: put together from single samples, or worked off one by one."""

from __future__ import annotations

from rlbench.profiling.advice.envs import WORTH
from rlbench.profiling.advice.gains import bound, gain, percent
from rlbench.profiling.advice.scopes import Scope, Scopes, called, only
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice
from rlbench.profiling.minibatch import ONE_BY_ONE, minibatch_of, passes_of
from rlbench.profiling.source import Statement

STACKING = (
    *(
        "stack",
        "vstack",
        "hstack",
        "concatenate",
        "array",
        "asarray",
        "tensor",
        "as_tensor",
        "cat",
        "from_numpy",
        "FloatTensor",
    ),
    *("LongTensor", "BoolTensor", "Tensor", "array_to_tensor"),
)
DRAWING = ("random.sample", "sample", "choices", "zip")
NOT_SAMPLING = ("env", "action", "other")
MANY = ONE_BY_ONE  # turns of a loop within one update, from which on it goes over samples
MOST_OF = 0.6  # of the phase
FEW = 4  # forward passes of one row for one step of the envs, from which on they are one for each env
OF_THE_TRAINING = ("step", "backward", "learn", "train", "reset", "update", "optimize", "train_step")
LEARNING = ("sample", "store", "transfer", "forward", "backward", "optimizer", "python", "update")


def stacks(statement: Statement) -> bool:
    """Whether a statement makes an array of single rows."""
    loop = statement.loop is not None and statement.loop.target != ""
    return bool(called(statement.calls, STACKING)) and (loop or "zip" in statement.calls or "map" in statement.calls)


def stacked_replay(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """A minibatch is put together row by row."""
    found = scopes.where(lambda scope: scope.phase not in NOT_SAMPLING and any(stacks(s) for s in scope.statements))
    share = sum(scope.share for scope in _disjoint(found))
    phase = evidence.share("sample")
    share = max(share, phase) if share > MOST_OF * phase else share  # then arrays take the place of all of it
    seconds = share * evidence.seconds / max(evidence.updates, 1)
    reading_s = evidence.twins.reading_s if evidence.twins else 0.0
    left = min(1.0, reading_s / seconds) if seconds else 1.0
    if not found or gain(share, left) < WORTH:
        return []
    for scope in found:
        scopes.claim(scope)
    largest = only(found[0], stacks)
    return [
        Advice(
            "stacked_replay",
            "fault",
            f"Every minibatch is stacked from single samples: {largest.function}() takes {percent(share)} of the time.",
            f"Calls in it: {', '.join(called(largest.calls, (*STACKING, *DRAWING))[:5])}. An array read by index takes "
            f"{percent(left)} of that here.",
            "Keep each field in one array and read rows by index: `self.obs = np.empty((size, obs_dim), np.float32)`; "
            "`self.obs[self.i % size] = obs`; `torch.from_numpy(self.obs[indices])`.",
            gain(share, left),
            bound(share),
            places=largest.places,
            notebook="03",
        )
    ]


def _disjoint(scopes: list[Scope]) -> list[Scope]:
    """Of scopes that may call each other only those that no other one calls by name."""

    def calls(scope: Scope, other: Scope) -> bool:
        return scope is not other and any(call.rsplit(".", 1)[-1] == other.function for call in scope.function_calls)

    return [scope for scope in scopes if not any(calls(other, scope) for other in scopes)]


def loop_over_samples(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """The update works off its samples one by one: a network pass, or operators, for each."""
    passes = passes_of(evidence.counted)
    twins, counted = evidence.twins, evidence.counted
    if passes >= MANY and counted and twins and twins.batch in twins.batches and evidence.updates:
        return _many_passes(evidence, scopes, passes)
    lines = [line for line in (counted.op_lines if counted else ()) if line.per_step >= MANY and line.phase in LEARNING]
    return _many_operators(evidence, scopes, {(line.place.file, line.place.line): line.per_step for line in lines})


def _many_passes(evidence: Evidence, scopes: Scopes, passes: int) -> list[Advice]:
    """A forward pass for each sample; backward goes through as many graphs."""
    share = evidence.share("forward", "backward", "sample")
    acting, acting_left = _acting_passes(evidence)
    each = evidence.seconds / evidence.updates
    together = evidence.twins.batches[evidence.twins.batch]
    kept = evidence.share("optimizer") * each
    left = min(1.0, max(0.0, together - min(kept, together / 2)) / (share * each))
    lines = [line for line in evidence.lines if line.phase in ("forward", "sample") and line.place.whose != "machinery"]
    places = [line.place for line in lines if line.own > 0] or [line.place for line in lines]
    for scope in scopes.where(lambda scope: scope.phase in ("forward", "sample", "backward") and scope.loops):
        scopes.claim(scope)
    return [
        Advice(
            "loop_over_samples",
            "fault",
            f"An update passes its samples through the network one by one: {passes} forward passes for one backward.",
            f"Forward and backward are {percent(evidence.share('forward', 'backward'))} of the time; one pass of a minibatch of "
            f"{evidence.twins.batch} takes {percent(left)} of it, timed on layers of the same shapes.",
            "Hand the network all rows at once: `q = net(obs)` with obs (B, D), then `q.gather(1, action[:, None])`; targets by "
            "`reward + gamma * (1 - done) * net(next_obs).max(dim=1).values`.",
            gain(share * (1 - left) + acting * (1 - acting_left)),
            bound(share + acting),
            places=tuple(places[:4]),
            notebook="06",
        )
    ]


def _acting_passes(evidence: Evidence) -> tuple[float, float]:
    """Share of choosing actions where that goes one by one too, and what one pass for all envs leaves of it; zeros otherwise."""
    single = [product for product in evidence.counted.products if product.phase == "action" and product.batch == 1]
    if not single or not evidence.counted.steps:
        return 0.0, 0.0
    first = single[0].inputs, single[0].outputs
    passes = sum(p.calls for p in single if (p.inputs, p.outputs) == first) / evidence.counted.steps
    return (evidence.share("action"), 1 / passes) if passes >= FEW else (0.0, 0.0)


def within_update(statement: Statement) -> bool:
    """Whether it stands in a loop that is part of an update: one with steps of an env or an optimizer in it is the training."""
    loop = statement.loop
    return loop is not None and loop.target != "" and not called(loop.calls, OF_THE_TRAINING)


def _many_operators(evidence: Evidence, scopes: Scopes, per_step: dict[tuple[str, int], float]) -> list[Advice]:
    """A loop whose lines run operators for each sample."""
    each_step = evidence.updates / evidence.steps if evidence.steps and evidence.updates else 1.0

    many = max(MANY, minibatch_of(evidence.counted) / 4)

    def goes_over_samples(scope: Scope) -> bool:
        turns = [per_step.get((place.file, place.line), 0.0) / each_step for place in scope.places]
        return scope.phase in LEARNING and max(turns, default=0.0) >= many and any(map(within_update, scope.statements))

    found = scopes.where(goes_over_samples)
    if not found:
        return []
    scope = found[0]
    left = 2.0 / max(per_step.get((place.file, place.line), 0.0) / each_step for place in scope.places)
    if gain(scope.share, left) < WORTH or left > 0.5:
        return []
    scopes.claim(scope)
    loop = next(statement.loop for statement in scope.statements if within_update(statement))
    return [
        Advice(
            "loop_over_samples",
            "fault",
            f"Samples one by one: `for {loop.target} in {loop.iterable}` takes {percent(scope.share)} of the time.",
            f"It starts {2 / left:.0f} operators in each update, each of them for a single row.",
            "Write it for the whole minibatch: index, compare and add tensors of shape (B,), without a loop.",
            gain(scope.share, left),
            bound(scope.share),
            places=scope.places,
            notebook="06",
        )
    ]
