"""Other ways to build it: no fault, but time to be had."""

from __future__ import annotations

from rlbench.profiling.advice.envs import env_phase
from rlbench.profiling.advice.gains import bound, duration, gain, percent
from rlbench.profiling.advice.scopes import Scopes
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice

LARGE = 0.15  # share of the time from which on a part is worth another way
ENVS = 8
FUSED_OPERATORS = 4  # an optimizer step in one call starts that many at most
UPDATE = ("forward", "backward", "optimizer")


def options(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """All options that apply."""
    if not evidence.steps:
        return []
    return [
        *_several_envs(evidence),
        *_optimizer(evidence),
        *_one_call(evidence),
        *_python(evidence),
        *_hot_lines(evidence, scopes),
    ]


def _several_envs(evidence: Evidence) -> list[Advice]:
    """One forward pass and one call for many envs."""
    products = evidence.counted.products if evidence.counted else ()
    acting = [product.batch for product in products if product.phase == "action"]
    share, env = evidence.share("action"), env_phase(evidence)
    if not acting or max(acting) > 1 or share < LARGE / 2:
        return []
    left = 1 / ENVS
    return [
        Advice(
            "several_envs",
            "option",
            f"Actions are chosen for one environment at a time: {percent(share)} of the time for a forward pass of one row.",
            f"A pass of {ENVS} rows takes about as long as one of a single row at this size."
            + (f" The env takes {duration(env.seconds / max(env.calls, 1))} a call." if env else ""),
            f"{ENVS} envs stepped together (`gymnasium.make_vec`), one pass for all; updates per env step stay as they are.",
            gain(share, left),
            bound(evidence.share("action", "env")),
            choice={"environments": "batched", "num_envs": ENVS},
            notebook="05",
        )
    ]


def _optimizer(evidence: Evidence) -> list[Advice]:
    """A step of the optimizer in many small operators."""
    work = {each.phase: each for each in (evidence.counted.work if evidence.counted else ())}.get("optimizer")
    share = evidence.share("optimizer")
    if work is None or not evidence.counted.updates or not evidence.updates or share < LARGE:
        return []
    each = work.ops / evidence.counted.updates
    if each <= FUSED_OPERATORS:
        return []
    seconds, fused = share * evidence.seconds / evidence.updates, evidence.twins.fused_s if evidence.twins else None
    left = FUSED_OPERATORS / each if fused is None else min(1.0, fused / seconds)
    return [
        Advice(
            "fused_optimizer",
            "option",
            f"A step of the optimizer starts {each:.0f} operators, {percent(share)} of the time.",
            f"In one call it starts one or two; {percent(left)} of its time is left then"
            + (", timed on parameters of the same shapes." if fused is not None else "."),
            "`torch.optim.Adam(parameters, lr=lr, fused=True)`",
            gain(share, left),
            bound(share),
            choice={"optimizer": "fused"},
            notebook="06",
        )
    ]


def _one_call(evidence: Evidence) -> list[Advice]:
    """Forward, backward and optimizer in one call, where starting operators is most of their time."""
    rows = [row for row in evidence.light if row.phase in UPDATE]
    if evidence.counted and evidence.counted.uncompiled:  # in few calls already, of operators that nobody has counted
        return []
    share = evidence.share(*UPDATE)
    seconds, floor = sum(row.seconds for row in rows), sum(row.floor_s for row in rows)
    if share < LARGE or not seconds or floor > 0.5 * seconds:
        return []
    operators = sum(row.ops for row in rows)
    return [
        Advice(
            "update_in_one_call",
            "option",
            f"Forward, backward and optimizer take {percent(share)} of the time; {percent(floor / seconds)} of that is "
            "arithmetic, memory, and the least that starting operators costs.",
            f"{operators:.0f} operators a step, {duration(seconds / max(operators, 1))} each.",
            "One call for all of it: `torch.compile` of the update, CUDA graphs on a GPU, native code on a CPU.",
            None,
            bound(share),
            choice={"update": "native"},
            notebook="08",
        )
    ]


def _python(evidence: Evidence) -> list[Advice]:
    """The loop itself."""
    own = evidence.share("python")
    if own < (LARGE if evidence.run is None else LARGE / 3):
        return []
    return [
        Advice(
            "whole_loop",
            "option",
            f"Python between the parts takes {percent(own)} of the time.",
            "It is the price of each step, however large the network: logging, counting, handing over.",
            "More envs a step spread it; a loop on tensors or in native code leaves it out, and does more than that in one call.",
            None,
            bound(own) if evidence.run is None else None,
            choice={"loop": "native"},
            notebook="11",
        )
    ]


def _hot_lines(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """Lines of the reader's that take long and that no rule explains."""
    found = scopes.where(
        lambda scope: (
            scope.share >= LARGE
            and scope.places[0].whose == "yours"
            and scope.phase in ("env", "store", "sample", "transfer", "python")
            and not any(call.endswith((".step", ".learn", ".train", "backward")) for call in scope.calls)
            and scope.function not in ("main", "<module>")
        )
    )
    return [
        Advice(
            "hot_line",
            "option",
            f"{scope.function}() takes {percent(scope.share)} of the time, most of it in phase {scope.phase}.",
            f"The line seen most: `{scope.places[0].source}`.",
            "No rule knows what it does; if it can be left out of the loop, the bound says what that brings.",
            None,
            bound(scope.share),
            places=scope.places,
        )
        for scope in found[:2]
    ]
