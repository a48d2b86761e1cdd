import json

import planted
import pytest
from planted import EVIL, HEALTHY, evidence

from rlbench.profiling.advice import advise
from rlbench.profiling.criteria import criteria
from rlbench.profiling.findings import Advice, Applied
from rlbench.profiling.limits import Overhead
from rlbench.profiling.records import DeviceUse, ThreadProbe
from rlbench.profiling.report import Report, ReportError


def report(made=None, save_trace=None, error=""):
    made = evidence() if made is None else made
    filled = Report()
    filled.fill(made, advise(made), criteria(made), save_trace, error)
    return filled


def rich():
    return report(planted.rich(), error=f"ValueError: {EVIL}")


def test_before_the_end_there_is_nothing_to_read():
    running = Report()
    for read in (lambda: running.evidence, lambda: running.advice, lambda: running.to_frame(), running.document):
        with pytest.raises(ReportError, match="still running"):
            read()
    assert "still running" in str(running) and "still running" in running._repr_html_()


@pytest.mark.parametrize(
    "made",
    [report, rich, lambda: report(planted.empty()), lambda: report(planted.on_cuda())],
)
def test_every_table_is_a_frame_and_everything_is_json(made):
    filled = made()
    for name in filled.tables:
        assert len(filled.to_frame(name)) == len(filled.rows(name))
    document = json.loads(json.dumps(filled.document(), allow_nan=False))
    for phase in document["phases"]:
        assert {"name", "seconds", "share"} <= set(phase)
    for sync in document["syncs"]:
        assert {"file", "line", "call", "count", "per_step", "source"} <= set(sync)
    for advice in document["advice"]:
        assert {"text", "evidence", "predicted_gain", "bound", "name", "kind", "places"} <= set(advice)
    with pytest.raises(ValueError, match="accepted are phases"):
        filled.to_frame("phase")


def test_the_phases_as_a_frame():
    frame = report().to_frame()
    assert dict(zip(frame["name"], frame["share"], strict=True)) == {**HEALTHY, "other": 0.0}
    assert frame.set_index("name").loc["env", "per_step_us"] == pytest.approx(1000.0)


def test_saved_and_not_saved_over(tmp_path):
    saved = []
    filled = report(save_trace=lambda path: saved.append(path.name))
    made = filled.save(tmp_path / "kept")
    assert [path.name for path in made] == ["profile.json", "profile.html", "trace.json"] and saved == ["trace.json"]
    with pytest.raises(FileExistsError, match="force"):
        filled.save(tmp_path / "kept")
    filled.save(tmp_path / "kept", force=True)
    with pytest.raises(ReportError, match="no trace"):
        report().save_trace(tmp_path / "t.json")


def test_criteria_never_pass_on_missing_data():
    found = {criterion.name: criterion for criterion in report().criteria}
    assert {name for name, c in found.items() if c.verdict == "not measured"} == {
        "GPU utilisation", "GPU memory", "transfers", "speed-up",
    }  # fmt: skip
    assert found["compute"].verdict == "passed" and found["compute"].found == "75 %"
    empty = criteria(evidence(phases=(), seconds=0.0))
    assert {c.verdict for c in empty} == {"not measured"}


def test_criteria_of_a_gpu_run():
    shares = HEALTHY | {"transfer": 0.2}
    made = evidence(shares, device="cuda", device_use=DeviceUse(0.9, 0.5))
    found = {c.name: c.verdict for c in criteria(made, speed_up=1.5)}
    assert found == {
        "GPU utilisation": "passed", "GPU memory": "failed", "transfers": "failed", "compute": "passed", "speed-up": "failed",
    }  # fmt: skip
    assert all(c.note for c in criteria(made))


def test_what_was_applied_stands_beside_what_was_predicted():
    filled = report()
    filled.applied = (Applied("fused_optimizer", {"optimizer": "fused"}, 1.4, 0.9, 0.85, 0.95, 0.99, 1.01, "slower"),)
    assert "1.40x" in filled.text() and "0.90x [0.85, 0.95]" in filled.text() and "slower" in filled.html()
    assert filled.to_frame("applied")["ratio"].tolist() == [0.9]


def test_the_document_names_the_device_and_what_was_seen_of_it():
    document = report(planted.on_cuda()).document()
    assert document["device"] == "cuda:0" and document["device_use"]["utilisation"] == 0.4
    assert report(planted.on_cuda()).to_frame("device").set_index("name").loc["memory", "value"] == 0.0625


def test_numbers_that_are_none_are_null():
    made = evidence(threads=ThreadProbe(8, 2, {1: 0.004, 8: float("inf")}), overhead=Overhead(float("nan"), 0.01))
    document = json.loads(json.dumps(report(made).document(), allow_nan=False))
    assert [row["seconds_a_step"] for row in document["threads"]] == [0.004, None]
    assert document["overhead"] == {"clock": None, "sampler": 0.01}


def test_findings_name_the_largest_phase_the_first_fault_and_its_bound():
    slow = report(evidence(threads=ThreadProbe(8, 2, {1: 0.004, 8: 0.010})))
    largest, first = slow.findings()
    assert "30 %, goes into forward" in largest and "at most 1.43 times" in largest  # 1 / (1 - 0.3)
    assert first.startswith("To change first: torch computes on 8 threads") and "2.50 times as fast" in first
    fault = Advice("x", "fault", "It waits.", "", "", 1.5, 1.75)
    bounded = Report()
    bounded.fill(evidence(), [fault], (), None)
    assert bounded.findings()[-1] == "No change of that part alone can make the run more than 1.75 times as fast."


def test_findings_claim_no_more_than_was_seen():
    assert report(planted.empty()).findings() == ("Nothing was on the clock, so there is nothing to say.",)
    assert "were not counted" in report(evidence(counted=None)).findings()[1]
    assert len(report(evidence(steps=0)).findings()) == 1
    alone = report(evidence(phases=planted.phases({"env": 1.0})))
    assert "faster without a bound" in alone.findings()[0]
    assert "update, 50 % of a second run under loop=python" in rich().findings()[0]


@pytest.mark.parametrize(
    ("ratios", "found", "verdict"),
    [
        ([(2.5, "faster"), (1.2, "faster")], "2.50x", "passed"),
        ([(1.02, "no difference seen"), (0.9, "slower")], "1.02x", "failed"),
        ([(9.0, "too few rounds"), (float("nan"), "could not run: x")], "no pairs were run: profile --apply, tune", None),
    ],
)  # fmt: skip
def test_the_speed_up_is_what_was_measured(ratios, found, verdict):
    filled = report()
    filled.applied = tuple(Applied("x", {}, 1.0, r, r, r, 1.0, 1.0, said) for r, said in ratios)
    by_name = {criterion.name: criterion for criterion in filled.criteria}
    assert (by_name["speed-up"].found, by_name["speed-up"].verdict) == (found, verdict or "not measured")
    assert by_name["compute"] == {c.name: c for c in report().criteria}["compute"]
