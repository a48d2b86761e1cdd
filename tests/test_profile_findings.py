import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "profiling"))

from planted import HEALTHY, counted, evidence, phases, place

from rlbench import profile_findings
from rlbench.profiling.advice import advise
from rlbench.profiling.criteria import criteria
from rlbench.profiling.findings import Advice, Applied
from rlbench.profiling.light import ALL
from rlbench.profiling.limits import Light
from rlbench.profiling.records import PhaseTime, Sync, ThreadProbe
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


def test_reads_of_the_device_are_summed_over_lines():
    def sync(line, per_step):
        return Sync(place(line=line), ".item()", "optimizer", 10, per_step)

    read = evidence(counted=counted((sync(3, 1.0), sync(3, 0.5), sync(9, 2.0))))
    assert profile_findings.waits(report(read)) == "The device is read 3.5 times a step, at 2 lines."
    assert "at 1 line." in profile_findings.waits(report(evidence(counted=counted((sync(3, 1.0),)))))
    assert profile_findings.waits(report(evidence())) == "No line reads from the device in 100 counted steps."
    assert "not counted" in profile_findings.waits(report(evidence(counted=None)))


def test_the_speed_of_light_in_a_sentence_and_a_table():
    whole = Light(ALL, 2e6, 1e3, 7.0, 4e-3, 1e-3, "memory", 0.25)
    made = report(evidence(light=(Light("forward", 1e6, 1e3, 7.0, 3e-3, 1e-4, "arithmetic", 0.033), whole)))
    assert "takes 4 ms" in profile_findings.light(made) and "1 ms on this machine, 25 %" in profile_findings.light(made)
    assert "not measured" in profile_findings.light(report(evidence(light=())))
    first, last = profile_findings.light_rows(made)
    assert (first["floor"], first["reached"], first["set by"]) == ("100 µs", "3.3 %", "arithmetic")
    assert last["phase"] == "all phases" and last["operations"] == 2_000_000


def test_hits_and_the_best_ratio():
    near, far = applied(2.0, 2.9, "faster"), applied(2.0, 3.1, "faster")
    few = applied(2.0, 2.0, "too few rounds")
    unseen, broken = applied(None, 9.0, "no difference seen"), applied(2.0, float("nan"), "could not run: x")
    said = profile_findings.hits((near, far, unseen, broken, few))
    assert said.startswith("1 of 2 predicted gains are within a factor 1.5")
    assert profile_findings.hits((unseen, broken)) == "No prediction was measured in enough pairs to tell."
    ((text, tone),) = profile_findings.predictions((few,))
    assert "too few rounds" in text and "within" not in text and tone == "none"
    assert profile_findings.best_ratio((near, far, unseen, broken)) == 3.1
    assert profile_findings.best_ratio((unseen, broken)) is None


def test_whether_the_same_is_learnt():
    assert "bit for bit" in profile_findings.agrees("fast", 0.0)
    assert "1.5e-06 of their way from plain's: the same but for rounding" in profile_findings.agrees("fast", 1.5e-6)
    assert "another result" in profile_findings.agrees("fast", 0.4)


def test_rows_of_phases_with_the_parts_of_a_call_last():
    parts = (PhaseTime("sync", 0.5, 0.25, 7, None, "iterations"),)
    fused = evidence(phases=(PhaseTime("iterations", 9.9, 0.99, 3), PhaseTime("other", 0.0, 0.0, 0), *parts))
    whole, part = profile_findings.phase_rows(report(fused))
    assert (whole["phase"], whole["a step"], whole["share"]) == ("iterations", "9.9 ms", "99 %")
    assert (part["phase"], part["a step"], part["share"]) == ("sync wait (part of iterations)", "", "25 %")
    assert profile_findings.phase_rows(report(evidence(steps=0)))[0]["a step"] == ""


def test_rows_of_advice_by_kind():
    slow = report(evidence(threads=ThreadProbe(8, 2, {1: 0.004, 8: 0.010})))
    (row, *_) = profile_findings.advice_rows(slow, "fault")
    assert row["gain"].startswith("predicted 2.50x")
    assert all("choice" not in row for row in profile_findings.advice_rows(slow, "against"))
    assert profile_findings.advice_rows(report(evidence()), "fault") == [{"advice": "none"}]
    instead = Advice("x", "option", "", "", "", None, None, choice={"replay": "ring_numpy", "threads": 1})
    assert profile_findings.choice_text(instead) == "replay=ring_numpy, threads=1"


def test_rows_of_what_was_applied():
    (row,) = profile_findings.applied_rows((applied(2.0, 2.5, "faster"),))
    assert (row["predicted"], row["measured"], row["A/A low"], row["verdict"]) == (2.0, 2.5, 1.0, "faster")
