"""`with rlbench.profile() as report:` around any torch code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rlbench.profiling.advice import advise
from rlbench.profiling.criteria import criteria
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.gather import evidence_of
from rlbench.profiling.report import Report
from rlbench.profiling.session import Plan, Session, unwatched


@contextmanager
def profile(
    name: str = "block", *, device: str | torch.device | None = None, threads: bool = False
) -> Iterator[Report]:
    """Profile a block; the report is filled when it ends, after an exception too, which is passed on.

        with rlbench.profile() as report:
            train()
        report

    The clock runs from the first moment. Soon after, a dozen steps are counted (synchronisations, operators) and some fifty
    traced: these run slower and are in no time. A block within the block has a report of its own.

    Args:
        name: what the report calls it.
        device: what the code computes on; CUDA where there is one, else the CPU.
        threads: try other numbers of torch threads for some seconds. Sums may then round differently for these steps.
    """
    where = torch.device(device) if device is not None else torch.device("cuda" if torch.cuda.is_available() else "cpu")
    plan = Plan.block(4.0 if threads else 0.0)
    caller = sys._getframe(2).f_globals  # past contextmanager's __enter__
    report = Report()
    session = Session(where, plan, namespaces=(caller,))
    try:
        with session:
            yield report
    finally:
        with unwatched():
            fill(report, session, evidence_of(session, "block", name))


def fill(report: Report, session: Session, evidence: Evidence) -> None:
    """Advice and criteria from the evidence, and all of it into the report."""
    save_trace = session.tracing.save if session.of("trace") is not None else None
    report.fill(evidence, advise(evidence), criteria(evidence), save_trace, session.error)
