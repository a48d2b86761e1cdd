import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "profiling"))

from planted import HEALTHY, evidence, phases

from rlbench import profile_findings
from rlbench.profiling.advice import advise
from rlbench.profiling.criteria import criteria
from rlbench.profiling.findings import Applied
from rlbench.profiling.records import ThreadProbe
from rlbench.profiling.report import Report


def report(made):
    filled = Report()
    filled.fill(made, advise(made), criteria(made), None)
    return filled


def test_the_largest_phase_and_its_bound():
    text = profile_findings.largest_phase(report(evidence(HEALTHY | {"forward": 0.5})))
    assert "forward with 50 %" in text and "at most 2.00 times" in text
    assert "Nothing was on the clock" in profile_findings.largest_phase(report(evidence(phases=())))
    assert "without a bound" in profile_findings.largest_phase(report(evidence(phases=phases({"env": 1.0}))))


def test_the_first_advice():
    slow = evidence(threads=ThreadProbe(8, 2, {1: 0.004, 8: 0.010}))
    assert "2.50 times as fast without it" in profile_findings.first_advice(report(slow))
    assert "No fault" in profile_findings.first_advice(report(evidence()))


def applied(predicted, ratio, verdict):
    return Applied("x", {}, predicted, ratio, ratio, ratio, 1.0, 1.0, verdict)


def test_predictions_beside_measurements():
    near, far, alone = (
        applied(2.0, 2.5, "faster"),
        applied(2.0, 0.9, "slower"),
        applied(None, 1.0, "no difference seen"),
    )
    said = list(profile_findings.predictions((near, far, alone, applied(1.0, float("nan"), "could not run: x"))))
    assert "within a factor 1.5" in said[0][0] and said[0][1] == "faster"
    assert "off by more than a factor" in said[1][0] and "0.90" in said[1][0] and said[1][1] == "slower"
    assert "predicted" not in said[2][0] and said[3] == ("x: could not run: x.", "note")


def test_what_would_not_help_and_what_watching_cost():
    assert any("Pinned memory" in text for text in profile_findings.against(report(evidence())))
    assert "the clock 0.5 % of the time" in profile_findings.price(report(evidence()))
    assert "not measured" in profile_findings.price(report(evidence(overhead=None, counted=None, trace=None)))
