"""Faults of reading: waiting for the device where nobody needs to, and graphs that nobody uses."""

from __future__ import annotations

from collections.abc import Sequence

from rlbench.profiling.advice.envs import WORTH
from rlbench.profiling.advice.gains import bound, duration, gain, percent
from rlbench.profiling.advice.scopes import Scopes
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice
from rlbench.profiling.minibatch import ONE_BY_ONE
from rlbench.profiling.records import Place, Sync
from rlbench.profiling.source import describe

OFTEN = 0.5  # times a step, or for each update
GRAPH_COST = 0.25  # of a forward pass: recording the graph, by what torch adds for small networks


def needed(sync: Sync) -> bool:
    """An env needs its action on the host: one read a step cannot be saved."""
    return sync.phase in ("action", "env") and sync.per_step <= 1.5


def avoidable(evidence: Evidence) -> list[Sync]:
    if evidence.counted is None:
        return []
    often = OFTEN * min(1.0, _updates_a_step(evidence))
    syncs = evidence.counted.syncs
    # The first action after an update is chosen in what looks like the next forward pass: the same line, seldom.
    acting = {_line(s): s.per_step for s in syncs if needed(s)}
    return [s for s in syncs if s.per_step >= often and not needed(s) and s.per_step > acting.get(_line(s), 0.0)]


def _line(sync: Sync) -> tuple[str, int, str]:
    return sync.place.file, sync.place.line, sync.call


def _updates_a_step(evidence: Evidence) -> float:
    return evidence.updates / evidence.steps if evidence.steps and evidence.updates else 1.0


def how_often(per_step: float, updates_a_step: float) -> str:
    """In steps; where updates are far fewer than steps, in updates."""
    number, of = (per_step, "a step") if updates_a_step > 0.5 else (per_step / updates_a_step, "an update")
    return f"Once {of}" if 0.95 <= number < 1.05 else f"{number:.3g} times {of}"


def in_loops(evidence: Evidence, syncs: Sequence[Sync]) -> float:
    """Share of the samples in the loops that stand around these reads."""
    loops = {(sync.place.file, sync.place.function, _loop_line(sync.place)) for sync in syncs}
    inside = [
        line.total
        for line in evidence.lines
        if any(
            (line.place.file, line.place.function, at) in loops
            for at in (_loop_line(line.place), line.place.line)
            if at
        )
    ]
    return min(0.95, sum(inside))  # one line of a function is on the stack at a time


def _loop_line(place: Place) -> int | None:
    """Where the loop around a line begins."""
    statement = describe(place)
    return statement.loop.line if statement and statement.loop else None


def sync_each_step(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """Numbers are read from the device at every step."""
    syncs = [sync for sync in avoidable(evidence) if _is_mine(sync, evidence)]
    if not syncs:
        return []
    syncs.sort(key=lambda sync: -sync.per_step)
    on_device = evidence.device.startswith("cuda")
    per_step = sum(sync.per_step for sync in syncs)
    step_s = evidence.seconds / evidence.steps if evidence.steps else 0.0
    waits = sum((sync.wait_s or 0.0) * sync.per_step for sync in syncs)
    places = list({(sync.place.file, sync.place.line): sync.place for sync in syncs}.values())
    one_by_one = in_loops(evidence, [sync for sync in syncs if sync.per_step >= ONE_BY_ONE * _updates_a_step(evidence)])
    waiting = min(0.95, waits / step_s) if step_s and on_device else 0.0
    share = max(waiting, one_by_one)
    cost = (
        f"They wait {duration(waits)} of a step's {duration(step_s)}."
        if on_device
        else "On the CPU the reading alone costs next to nothing; on a GPU each waits until the device has caught up, and the "
        "host cannot run ahead of it."
    )
    if one_by_one:
        cost += f" The loops that read one number after the other take {percent(one_by_one)} of the time."
    calls = ", ".join(dict.fromkeys(sync.call for sync in syncs))
    return [
        Advice(
            "sync_each_step",
            "fault",
            f"{how_often(per_step, _updates_a_step(evidence))} a number is read from a tensor: {calls}.",
            f"Counted over {evidence.counted.steps} steps, at {len(places)} {'lines' if len(places) > 1 else 'line'}. {cost}",
            "Compute it for the whole tensor, such as `grad.square().sum()`, and read one number."
            if one_by_one
            else "Keep it as a tensor, `losses.append(loss.detach())`, and read all of them at a log point: "
            "`torch.stack(losses).mean().item()`.",
            gain(share),
            bound(share),
            places=tuple(places[:5]),
            notebook="04",
        )
    ]


def _is_mine(sync: Sync, evidence: Evidence) -> bool:
    """The reader's own lines; of our trainers those of a variant that reads at every step."""
    if evidence.run is not None:
        return evidence.run.choices.metrics == "item_each_step" and sync.place.whose != "machinery"
    return sync.place.whose == "yours"


def round_trip(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """Data goes to the device and comes back within a step."""
    copies = {copy.direction: copy for copy in (evidence.trace.copies if evidence.trace else ())}
    up, down = copies.get("host to device"), copies.get("device to host")
    if up is None or down is None or not evidence.trace.steps or down.bytes < 0.3 * up.bytes or down.bytes < 4096:
        return []
    share = min(0.95, up.share / 2 + down.share + evidence.share("sync"))
    syncs = evidence.counted.syncs if evidence.counted else ()
    places = [sync.place for sync in syncs if sync.call in (".cpu()", ".numpy()") and not needed(sync)]
    return [
        Advice(
            "round_trip",
            "fault",
            f"{down.bytes / evidence.trace.steps:,.0f} bytes a step go to the device and come back.",
            f"{up.count} copies up, {down.count} down in {evidence.trace.steps} steps; these and the waits "
            f"for them take {percent(share)} of the time.",
            "Leave the data where it is used: keep the replay on the device, or copy a minibatch up once, and bring back numbers "
            "at log points only.",
            gain(share),
            bound(share),
            places=tuple(places[:4]),
            notebook="04",
        )
    ]


def grad_while_acting(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """A graph for backward is recorded for actions that nothing is learnt from."""
    products = evidence.counted.products if evidence.counted else ()
    acting = [product for product in products if product.phase == "action"]
    share = evidence.share("action")
    if not acting or not all(product.learning for product in acting) or gain(share * GRAPH_COST) < WORTH:
        return []
    places = [line.place for line in evidence.lines if line.phase == "action" and line.place.whose == "yours"]
    return [
        Advice(
            "grad_while_acting",
            "fault",
            "Actions are chosen with gradients on: a graph for backward is recorded and thrown away at every step.",
            f"Choosing actions takes {percent(share)} of the time; a quarter of a small forward pass is recording.",
            "`with torch.inference_mode(): action = net(obs).argmax()`",
            gain(share * GRAPH_COST),
            bound(share),
            places=tuple(places[:2]),
            notebook="06",
        )
    ]
