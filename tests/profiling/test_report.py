import json
from html.parser import HTMLParser

import pytest
from planted import HEALTHY, evidence, hot, phases, place

from rlbench.profiling.advice import advise
from rlbench.profiling.criteria import criteria
from rlbench.profiling.findings import Applied
from rlbench.profiling.records import DeviceUse, PhaseTime, Sync, ThreadProbe
from rlbench.profiling.report import Report, ReportError

EVIL = '<script>alert("x")</script> & `code`'


def report(made=None, save_trace=None, error=""):
    made = evidence() if made is None else made
    filled = Report()
    filled.fill(made, advise(made), criteria(made), save_trace, error)
    return filled


def rich():
    counted = evidence().counted
    syncs = (Sync(place(EVIL), ".item()", "python", 100, 1.0), Sync(place("x" * 300), "if t", "forward", 3, 0.03))
    parts = (PhaseTime("env", 1.0, 0.5, 10, part_of="iterations"),)
    made = evidence(
        name=EVIL,
        counted=type(counted)(100, 100, 0.5, 5.0, syncs, (), counted.products, counted.work),
        lines=(hot(EVIL, 0.5, 0.6, "env"), hot("y" * 300, 0.1, 0.1, "sample", file="a/" * 80 + "b.py")),
        threads=ThreadProbe(8, 2, {1: 0.004, 8: float("inf")}),
        phases=(*phases({"iterations": 0.9, "python": 0.1}), *parts),
        notes=(EVIL,),
    )
    return report(made, error=f"ValueError: {EVIL}")


class Tags(HTMLParser):
    """Opening and closing tags in order; checks that they nest."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_before_the_end_there_is_nothing_to_read():
    running = Report()
    for read in (lambda: running.evidence, lambda: running.advice, lambda: running.to_frame(), running.document):
        with pytest.raises(ReportError, match="still running"):
            read()
    assert "still running" in str(running) and "still running" in running._repr_html_()


@pytest.mark.parametrize(
    "made",
    [report, rich, lambda: report(evidence(counted=None, trace=None, twins=None, phases=(), seconds=0.0, steps=0))],
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


@pytest.mark.parametrize("made", [report, rich])
def test_text_fits_a_terminal(made):
    text = made().text()
    assert max(map(len, text.splitlines())) <= 100
    assert "Where the time goes" in text and "not measured" in text


def test_the_answer_comes_first():
    filled = report(evidence(threads=ThreadProbe(8, 2, {1: 0.004, 8: 0.010})))
    text = filled.text()
    assert text.index("What to change first") < text.index("Where the time goes")
    assert "[predicted 2.50x]" in text and "1. torch computes on 8 threads" in text


@pytest.mark.parametrize("made", [report, rich])
@pytest.mark.parametrize("whole", [True, False])
def test_the_page_is_whole_safe_and_alone(made, whole):
    filled = made()
    html = filled.html() if whole else filled._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert tags.open == [] and "script" not in tags.seen and "http" not in html
    if made is rich:
        assert '<script>alert("x")</script>' in "".join(tags.text)


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
