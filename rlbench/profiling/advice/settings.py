"""Faults of settings: threads, widths, minibatches. Predicted from what was timed, not from rules of thumb."""

from __future__ import annotations

from rlbench.profiling.advice.gains import bound, duration, percent
from rlbench.profiling.advice.scopes import Scopes
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice
from rlbench.profiling.minibatch import passes_of

CLEARLY = 1.05  # times as fast, above what blocks differ by
WIDE, FLAT = (
    512,
    256,
)  # hidden units from which a width is asked about; inputs up to which a net is for a flat observation
NARROWER = 10
SMALL, USUAL = 32, 128  # minibatches: below the first most of an update is calling; the second is what most DQNs take
WORTH = 1.2
UPDATE = ("forward", "backward", "optimizer", "update")


def too_many_threads(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """The run is faster with another number of torch threads."""
    probe = evidence.threads
    if probe is None or len(probe.seconds) < 2 or probe.now not in probe.seconds:
        return []
    best = min(probe.seconds, key=lambda number: probe.seconds[number])
    ratio = probe.seconds[probe.now] / probe.seconds[best]
    if best == probe.now or ratio < CLEARLY:
        return []
    tried = ", ".join(f"{number}: {duration(probe.seconds[number])}" for number in sorted(probe.seconds))
    many = best < probe.now
    return [
        Advice(
            "too_many_threads" if many else "too_few_threads",
            "fault",
            f"torch computes on {probe.now} threads; on {best} a step is {ratio:.2f} times as fast.",
            f"Tried in turns in this run, seconds a step by threads: {tried}. This process has {probe.cores} physical cores."
            + (" Work this small is over before the threads have met." if many else ""),
            f"`torch.set_num_threads({best})` before the first tensor, or OMP_NUM_THREADS={best}.",
            ratio,
            None,
            choice={"threads": best},
            notebook="12",
        )
    ]


def too_wide(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """Most of the time goes into layers far wider than a flat observation asks for."""
    twins = evidence.twins
    products = evidence.counted.products if evidence.counted else ()
    inputs = [product.inputs for product in products if product.learning and not product.convolution]
    if (
        twins is None
        or not inputs
        or min(inputs) > FLAT
        or max(twins.hidden, default=0) < WIDE
        or NARROWER not in twins.narrower
    ):
        return []
    ratio = narrower_run(evidence, NARROWER)
    if ratio < WORTH:
        return []
    others = ", ".join(f"1/{by}: {narrower_run(evidence, by):.2f}x" for by in sorted(twins.narrower) if by > 1)
    widths = "-".join(map(str, twins.hidden))
    narrow = tuple(max(1, width // NARROWER) for width in twins.hidden)
    share = evidence.share("action", *UPDATE)
    return [
        Advice(
            "too_wide",
            "fault",
            f"The hidden layers are {widths} wide for {min(inputs)} inputs; their arithmetic takes {percent(share)} of the time.",
            f"The same layers timed here at a part of the width, for the whole run: {others}. 64 to 256 units are usual for such "
            "inputs.",
            f"hidden {'-'.join(map(str, narrow))}. It is another network: compare returns over several seeds before you keep it.",
            ratio,
            bound(share),
            choice={"hidden": narrow},
            notebook="01",
        )
    ]


def narrower_run(evidence: Evidence, by: int) -> float:
    """Times as fast with all hidden widths divided by `by`."""
    twins = evidence.twins
    update, acting = evidence.share(*UPDATE), evidence.share("action")
    rest = 1 - update - acting
    left = update * twins.narrower[by] + acting * twins.acting[by] + rest * min(1.0, twins.around[by])
    return 1.0 / max(left, 1e-4)


def small_batch(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """An update takes nearly as long for a few transitions as for many."""
    twins = evidence.twins
    if twins is None or not evidence.updates or twins.batch >= SMALL or passes_of(evidence.counted) >= SMALL:
        return []
    larger = USUAL if USUAL in twins.batches else max(twins.batches)
    if larger <= twins.batch or twins.batch not in twins.batches:
        return []
    each = evidence.seconds / evidence.updates
    more = max(0.0, twins.batches[larger] - twins.batches[twins.batch])
    ratio = larger / twins.batch * each / (each + more)
    return [
        Advice(
            "small_batch",
            "fault",
            f"Updates learn from {twins.batch} {'transition' if twins.batch == 1 else 'transitions'} each.",
            f"An update with its share of the rest takes {duration(each)}; with {larger} transitions {duration(more)} more, "
            "by layers of the same shapes.",
            f"A minibatch of {larger}, with a learning rate and updates that suit it: compare returns, not only rates.",
            ratio,
            None,
            metric="transitions learnt a second",
            choice={"batch_size": larger},
            notebook="06",
        )
    ]
